// NamedRun: how what all ranks have agreed about is run: as collectives of the backend, in an order
// that is that of all ranks. Floor: torch_ext/order. Thread: one at a time; the end is told in any,
// with no lock held.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "csrc/order/agreed.h"
#include "torch_ext/backend/backend.h"
#include "torch_ext/order/named_work.h"

namespace rdmacoll::torch_ext {

struct NamedRun {
  AgreedPtr agreed;
  NamedWorkPtr work;  // nullptr: this rank has joined; it adds zeros, and drops what comes of it
};

// What was started and is to be told of its end.
struct StartedRuns {
  std::vector<NamedRun> runs;
  std::vector<RdmaBackend::WorkRef> works;
  std::vector<std::function<void()>> finish;  // once they have ended well: what is left to compute
  // Then, unless it is empty: starts the next stage, as ranks start collectives in one order. No
  // other runs start before the last stage has.
  std::function<StartedRuns(RdmaBackend&)> next;
};

// Whether the second may be one operation of the backend together with the first.
bool goes_with(const NamedRun& first, const NamedRun& second);

// Starts runs that go together, or one. Throws what the backend does.
StartedRuns start(RdmaBackend& backend, std::vector<NamedRun> runs);

}  // namespace rdmacoll::torch_ext
