// Meeting. Floor: tests.
#include "tests/processes/meeting.h"

#include <unistd.h>

#include <cstring>

#include "csrc/base/check.h"

namespace rdmacoll {

void MeetingBootstrap::give(const std::string& mine) {
  RDMACOLL_CHECK(mine.size() <= Meeting::kRecordBytes);
  std::memcpy(meeting_.records[rank_], mine.data(), mine.size());
  meeting_.record_bytes[rank_] = static_cast<uint32_t>(mine.size());
  meeting_.arrived.fetch_add(1);
}

Result<std::vector<std::string>> MeetingBootstrap::all_gather(const std::string& mine,
                                                              Deadline deadline) {
  give(mine);
  const SteadyClock clock;
  while (meeting_.arrived.load() < size_) {
    if (deadline.passed(clock)) return Status(StatusCode::Timeout, "the ranks did not all come");
    usleep(100);
  }
  std::vector<std::string> all;
  for (int r = 0; r < size_; ++r) all.emplace_back(meeting_.records[r], meeting_.record_bytes[r]);
  return all;
}

}  // namespace rdmacoll
