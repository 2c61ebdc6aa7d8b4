// TablesForTest: tables in this process, which fail when they are told to.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "csrc/files/draft.h"
#include "csrc/files/reading.h"

namespace rdmacoll::files {

class TablesForTest final : public Tables {
 public:
  Status read(std::span<const Wanted> wanted) override {
    if (fails_reads) return Status(StatusCode::PeerFailed, "both servers are lost");
    if (answers_late) {
      late.insert(late.end(), wanted.begin(), wanted.end());
      return Status(StatusCode::Timeout, "they have not answered in time");
    }
    return answer(wanted);
  }
  Status answer(std::span<const Wanted> wanted) {
    for (const Wanted& one : wanted) {
      const auto found = all.find(one.part.table);
      if (found == all.end()) return Status(StatusCode::InvalidArgument, "it was dropped");
      // As servers do: a table is as long as its part.
      RDMACOLL_CHECK(found->second.size() == elements_of(one.part.bytes));
      RDMACOLL_CHECK(one.first + one.into.size() <= found->second.size());
      std::copy_n(found->second.begin() + static_cast<ptrdiff_t>(one.first), one.into.size(),
                  one.into.begin());
    }
    return Status();
  }

  // What servers have is what there is when they are waited for.
  Result<std::shared_ptr<Writing>> write(const Part& part, std::span<const float> values,
                                         std::shared_ptr<const void> keeps) override {
    RDMACOLL_CHECK(keeps != nullptr);
    RDMACOLL_CHECK(values.size() == elements_of(part.bytes));
    RDMACOLL_CHECK(!all.contains(part.table) && part.table != kHole);
    return std::shared_ptr<Writing>(std::make_shared<UnderWay>(*this, part.table, values));
  }

  Result<std::shared_ptr<std::byte>> lend(uint64_t bytes) override {
    lent_bytes += bytes;
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  }

  std::map<uint32_t, std::vector<float>> all;
  uint64_t lent_bytes = 0;
  bool fails_reads = false;
  bool answers_late = false;
  std::vector<Wanted> late;  // what is to be answered
  bool has_room = true;

 private:
  class UnderWay final : public Writing {
   public:
    UnderWay(TablesForTest& tables, uint32_t table, std::span<const float> values)
        : tables_(tables), table_(table), values_(values) {}
    Status wait() override {
      if (!tables_.has_room) return Status(StatusCode::System, "no room");
      tables_.all[table_].assign(values_.begin(), values_.end());
      return Status();
    }

   private:
    TablesForTest& tables_;
    const uint32_t table_;
    const std::span<const float> values_;
  };
};

inline std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Of a version, by files::read().
inline std::string text_of(Tables& tables, const Parts& parts, uint64_t first, uint64_t count) {
  const auto room = std::make_shared<std::vector<float>>(elements_of(count) + 3);
  auto* const at = reinterpret_cast<std::byte*>(room->data() + 1) + first % sizeof(float);
  const Status status = files::read(tables, parts, first, {at, count}, room);
  RDMACOLL_CHECK(status.ok());
  return {reinterpret_cast<const char*>(at), count};
}

}  // namespace rdmacoll::files
