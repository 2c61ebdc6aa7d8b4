// Refusals: why something is not read, written or updated, or not believed. Floor: remote.
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/engine/work/work.h"
#include "csrc/remote/opened.h"

namespace rdmacoll {

inline WorkPtr ended(Status status) {
  auto work = std::make_shared<Work>();
  static_cast<void>(work->finish(std::move(status)));  // it has no callbacks yet
  return work;
}

inline Status bad_reply(const std::string& who) {
  return Status(StatusCode::PeerFailed,
                who + " has answered what makes no sense; install the same rdmacoll on both sides");
}

inline bool holds(const Opened& opened, uint64_t offset, uint64_t bytes) {
  return offset <= opened.info.bytes && bytes <= opened.info.bytes - offset;
}

inline Status out_of_range(const Opened& opened, uint64_t offset, uint64_t bytes) {
  return Status(StatusCode::InvalidArgument, std::to_string(bytes) + " bytes from byte " +
                                                 std::to_string(offset) + " on are not in '" +
                                                 opened.info.name + "', which has " +
                                                 std::to_string(opened.info.bytes));
}

inline Status check_writable(const Opened& opened) {
  if (opened.info.is_writable) return Status();
  return Status(StatusCode::InvalidArgument,
                "'" + opened.info.name + "' of " + opened.who +
                    " is for reading; its owner may expose it with access=\"rw\"");
}

}  // namespace rdmacoll
