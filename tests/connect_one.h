// Meets one process over whatever reaches it, where a test has but one. Floor: tests.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "csrc/engine/connect/transports.h"

namespace rdmacoll {

inline Result<Path> connect_one(Transports& transports, const std::string& address,
                                Deadline deadline, const Clock& clock) {
  constexpr int64_t kLookForCallsMs = 150;
  for (Deadline for_calls = Deadline::after_ms(clock, kLookForCallsMs);;) {
    const bool last = deadline.passed(clock);
    const bool is_time = for_calls.passed(clock);
    if (is_time) for_calls = Deadline::after_ms(clock, kLookForCallsMs);
    auto path = transports.look(address, is_time);
    if (last || path.status().code() != StatusCode::Timeout) return path;
    Transports::Report report;
    transports.serve(report);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace rdmacoll
