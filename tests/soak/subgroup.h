// SubgroupBootstrap: how members of a group make another, over the group that they have. All of its
// ranks call it, also those that will not be members. Floor: tests. Thread: the rank's main one.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "csrc/engine/communicator.h"
#include "tests/processes/meeting.h"

namespace rdmacoll::soak {

class SubgroupBootstrap final : public Bootstrap {
 public:
  SubgroupBootstrap(Communicator& all, std::vector<int> members)
      : all_(all), members_(std::move(members)) {}

  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline) override {
    std::vector<char> records(Meeting::kRecordBytes * static_cast<size_t>(all_.size()));
    std::vector<MutableBuffer> outputs;
    for (int r = 0; r < all_.size(); ++r) outputs.push_back({at(records, r), kBytes});
    std::vector<char> own(kBytes);
    const auto bytes = static_cast<uint32_t>(mine.size());
    std::memcpy(own.data(), &bytes, sizeof(bytes));
    std::memcpy(own.data() + sizeof(bytes), mine.data(), mine.size());
    auto work = all_.all_gather({own.data(), kBytes}, outputs);
    const Status status = work.ok() ? all_.wait(*work.value(), -1, {}) : work.status();
    if (!status.ok()) return status;
    std::vector<std::string> of_members;
    for (const int member : members_) {
      uint32_t its_bytes;
      std::memcpy(&its_bytes, at(records, member), sizeof(its_bytes));
      of_members.emplace_back(at(records, member) + sizeof(its_bytes), its_bytes);
    }
    return of_members;
  }
  void decline(const std::string& mine) override { (void)all_gather(mine, Deadline{0}); }

 private:
  static constexpr size_t kBytes = Meeting::kRecordBytes;
  static char* at(std::vector<char>& records, int rank) {
    return records.data() + static_cast<size_t>(rank) * kBytes;
  }

  Communicator& all_;
  const std::vector<int> members_;
};

}  // namespace rdmacoll::soak
