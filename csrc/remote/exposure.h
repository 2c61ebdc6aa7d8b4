// Exposure: a range of memory of this process that others open by its name, and who has.
// Floor: remote. Thread: any; the driver looks at notified().
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/engine/session/session.h"
#include "csrc/remote/remote_memory.h"
#include "csrc/remote/statement.h"

namespace rdmacoll {

// What who opens it is told.
struct ExposureInfo {
  std::string name;
  uint64_t bytes = 0;
  bool is_writable = false;
  bool has_versions = false;  // two buffers of so many bytes behind a statement (statement.h)
  std::string meta{};         // the caller's: what the bytes are

  // What it takes of its memory.
  uint64_t memory_bytes() const { return has_versions ? versions_bytes(bytes) : bytes; }
};
inline constexpr size_t kNameBytesMax = 255;
inline constexpr size_t kMetaBytesMax = 512;

class Exposure {
 public:
  // One opening of it.
  struct Opening {
    SessionPtr session;
    uint64_t number = 0;                // the opener's
    std::optional<uint32_t> stop_line;  // in which the opener is told that it is revoked
    std::optional<uint32_t> line{};     // in which it notifies this process
  };

  Exposure(ExposureInfo info, RemoteMemoryPtr memory, uint64_t offset)
      : info(std::move(info)), memory(std::move(memory)), offset(offset) {}

  const ExposureInfo info;
  const RemoteMemoryPtr memory;
  const uint64_t offset;  // in the memory

  std::vector<Opening> openings() const {
    const std::lock_guard lock(mutex_);
    return openings_;
  }
  // The line that it gets, if it may write and there is one.
  std::optional<uint32_t> open(const SessionPtr& session, uint64_t number,
                               std::optional<uint32_t> stop_line) {
    const std::lock_guard lock(mutex_);
    Opening opening{session, number, stop_line};
    if (info.is_writable) opening.line = session->take_line(Session::LineUse::Notify);
    openings_.push_back(opening);
    return opening.line;
  }
  bool is_open(const SessionPtr& session, uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(openings_, [&](const Opening& opening) {
      return opening.session == session && opening.number == number;
    });
  }
  // Of this number, or all of the session. Their writers write no more.
  void close(const SessionPtr& session, std::optional<uint64_t> number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(openings_, [&](const Opening& opening) {
      if (opening.session != session || opening.number != number.value_or(opening.number)) {
        return false;
      }
      if (!opening.line) return true;
      closed_notified_ = std::max(closed_notified_, session->counter(*opening.line));
      session->give_line_back(*opening.line);
      return true;
    });
  }
  // The most that anybody has notified.
  uint64_t notified() const {
    const std::lock_guard lock(mutex_);
    uint64_t most = closed_notified_;
    for (const Opening& opening : openings_) {
      if (opening.line) most = std::max(most, opening.session->counter(*opening.line));
    }
    return most;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Opening> openings_;
  uint64_t closed_notified_ = 0;  // by those who have closed it
};

}  // namespace rdmacoll
