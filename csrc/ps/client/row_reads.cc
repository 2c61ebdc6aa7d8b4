// RowReads. Floor: ps/client. Thread: under the client's lock.
#include "csrc/ps/client/row_reads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

namespace rdmacoll::ps {
namespace {

constexpr size_t kSideBySide = 16;
constexpr int kTries = 4;

enum class Found : uint8_t { Yes, No, Changed };

// What a server writes meanwhile makes the copy worthless, which is found out after that.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread"))) void copy(std::byte* to, const std::byte* from,
                                                 uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; ++i) to[i] = from[i];
}
#else
void copy(std::byte* to, const std::byte* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace

// One call of read(): it holds the memory that it looks at. The rows lie anywhere, each behind
// several looks of which one needs the other. So a few of them are looked for side by side.
class RowReads::Reading {
 public:
  Reading(RowReads& reads, const Wanted& wanted, const BucketMap& map, const Limit& limit)
      : reads_(reads), wanted_(wanted), map_(map), limit_(limit) {}

  // rows: at most kSideBySide of them.
  void read(std::span<const uint32_t> rows, std::vector<uint32_t>& changed,
            std::vector<uint32_t>& left) {
    std::array<Look, kSideBySide> looks;
    for (size_t i = 0; i < rows.size(); ++i) begin(looks[i], rows[i]);
    for (size_t i = 0; i < rows.size(); ++i) find(looks[i]);
    for (size_t i = 0; i < rows.size(); ++i) finish(looks[i]);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (looks[i].found == Found::Changed) changed.push_back(rows[i]);
      if (looks[i].found == Found::No) left.push_back(rows[i]);
    }
  }

 private:
  struct Look {
    uint64_t id = 0;
    ServerId server = kNoServer;
    std::byte* into = nullptr;
    std::optional<RowLook> at{};
    std::span<const IndexPlace> index{};
    const std::byte* values = nullptr;
    Found found = Found::No;
  };

  // The index of its bucket.
  void begin(Look& look, uint32_t row) {
    look.id = wanted_.ids[row];
    look.into = wanted_.into + row * wanted_.row_bytes;
    const uint32_t bucket = bucket_of_row(wanted_.table, look.id);
    look.server = map_.of(bucket).primary;
    const RowDirectory* const directory = directory_of(look.server);
    if (directory == nullptr) return;
    const BucketRows& rows = (*directory)[bucket];
    look.at.emplace(rows);
    const uint64_t index = rows.index.load(std::memory_order_relaxed);
    const uint64_t places = rows.index_places.load(std::memory_order_relaxed);
    if (!look.at->holds()) {
      look.found = Found::Changed;
    } else if (index != 0 && places != 0) {
      const auto* const data = bytes_at(look.server, index, places * sizeof(IndexPlace));
      if (data == nullptr) return;
      look.index = {reinterpret_cast<const IndexPlace*>(data), places};
      __builtin_prefetch(&look.index[first_index_place(look.id, places)]);
    }
  }

  // Where it lies, by that index.
  void find(Look& look) {
    if (look.index.empty()) return;
    uint64_t at = first_index_place(look.id, look.index.size());
    uint64_t row = 0;
    for (uint64_t looked = 0; looked < look.index.size(); ++looked) {
      row = look.index[at].row.load(std::memory_order_relaxed);
      if (row == 0 || look.index[at].id.load(std::memory_order_relaxed) == look.id) break;
      at = (at + 1) & (look.index.size() - 1);
    }
    if (!look.at->holds()) {
      look.found = Found::Changed;
    } else if (row != 0) {
      const auto* const data = bytes_at(look.server, row, sizeof(RowHead) + wanted_.row_bytes);
      if (data == nullptr) return;
      look.values = data + sizeof(RowHead);
      for (uint64_t i = 0; i < wanted_.row_bytes; i += kLineBytes) {
        __builtin_prefetch(look.values + i);
      }
    }
  }

  void finish(Look& look) {
    if (look.values == nullptr) return;
    copy(look.into, look.values, wanted_.row_bytes);
    look.found = look.at->holds() ? Found::Yes : Found::Changed;
  }

  // nullptr: it is not known, or not mapped here.
  const RowDirectory* directory_of(ServerId server) {
    const auto [at, is_new] = directories_.try_emplace(server, nullptr);
    if (!is_new) return at->second;
    const auto known = reads_.known_.find({wanted_.table, server});
    if (known == reads_.known_.end()) return nullptr;
    const auto* const data = bytes_at(server, packed(known->second), sizeof(RowDirectory));
    return at->second = reinterpret_cast<const RowDirectory*>(data);
  }

  const std::byte* bytes_at(ServerId server, uint64_t place, uint64_t bytes) {
    const auto [extent, offset] = unpacked(place);
    const auto [at, is_new] = extents_.try_emplace({server, extent});
    if (is_new) at->second = reads_.surroundings_.mapped(server, extent, limit_);
    const std::span<const std::byte> all = at->second.bytes;
    const bool is_in = offset <= all.size() && bytes <= all.size() - offset;
    return is_in ? all.data() + offset : nullptr;
  }

  RowReads& reads_;
  const Wanted& wanted_;
  const BucketMap& map_;
  const Limit& limit_;
  std::map<ServerId, const RowDirectory*> directories_;
  std::map<std::pair<ServerId, uint32_t>, Mapped> extents_;
};

void RowReads::learn(uint32_t table, ServerId server, const ShardPlace& directory) {
  if (directory.extent != 0) known_[{table, server}] = directory;
}

void RowReads::forget(ServerId server) {
  std::erase_if(known_, [&](const auto& one) { return one.first.second == server; });
}

bool RowReads::knows(uint32_t table) const {
  const auto first = known_.lower_bound({table, 0});
  return first != known_.end() && first->first.first == table;
}

void RowReads::read(const Wanted& wanted, const BucketMap& map, const Limit& limit,
                    std::vector<uint32_t>& rows) {
  Reading reading(*this, wanted, map, limit);
  std::vector<uint32_t> left;
  for (int tries = 0; tries < kTries && !rows.empty(); ++tries) {
    std::vector<uint32_t> changed;
    for (std::span<const uint32_t> rest = rows; !rest.empty();) {
      const auto some = rest.first(std::min(rest.size(), kSideBySide));
      reading.read(some, changed, left);
      rest = rest.subspan(some.size());
    }
    rows = std::move(changed);
  }
  rows.insert(rows.end(), left.begin(), left.end());
}

}  // namespace rdmacoll::ps
