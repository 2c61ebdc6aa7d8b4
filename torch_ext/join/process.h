// Process: what all groups of this process share: one endpoint, opened with the first group and
// closed with the last, what tells others of it, and the way out. Where ranks draw their secret in
// a store, groups of another store have another, and so an endpoint of their own. With ProcessLife
// the one global of the project, but for what heap_allocator.cc puts in the place of torch's
// allocator, and flight_service.cc in that of a signal handler. Floor: torch_ext/join. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/hmac.h"
#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/endpoint.h"
#include "torch_ext/base/process_life.h"
#include "torch_ext/join/flight_service.h"
#include "torch_ext/join/session.h"

namespace rdmacoll::torch_ext {

// The job's secret as the launcher has it, or the store of the group.
using AskSecret = std::function<Result<SecretSetting>()>;

class Process {
 public:
  static Process& instance();

  // Joins a group. All its ranks call it; timeout_ms bounds the call and then its operations.
  // algorithm: as Endpoint::create_communicator has it. ask_secret: for where the environment names
  // no file with one.
  Result<std::shared_ptr<Session>> join(int rank, int size, Bootstrap& bootstrap,
                                        int64_t timeout_ms, const std::string& algorithm,
                                        const GroupName& name, const AskSecret& ask_secret);
  // What a communicator that was made of another is to torch.
  std::shared_ptr<Session> enlist(std::shared_ptr<Communicator> communicator);

  // The signature of a text with the job's secret, for messages between ranks that Python writes.
  // There must be a group.
  Result<Mac> sign(const std::string& text);

  // Of the newest endpoint, also when that is closed; nullptr: there is none.
  std::shared_ptr<FlightRecorder> flight_recorder();

  // The heap of all endpoints of this process, made when it is first asked for; nullptr where
  // RDMACOLL_HEAP_BYTES is 0, and in a forked child until it joins a group of its own.
  Heap* heap();
  HeapStats heap_stats();
  // The heap in which these bytes lie, be it a parent's; nullptr: they are in none.
  Heap* heap_of(const void* data);

  // Before Python leaves: aborts every operation in flight, so that none calls into Python later.
  void quiesce();

 private:
  Process();
  Result<std::shared_ptr<Endpoint>> endpoint(const AskSecret& ask_secret);
  // Once, on the first rank of a host.
  void warn_of_unknown_settings(const Config& config);
  // On one rank, once.
  void warn_without_secret(const Config& config, int rank, int size);
  // Under the mutex.
  std::shared_ptr<Endpoint> newest_endpoint() const;
  std::shared_ptr<Endpoint> endpoint_of(const SecretSetting& secret) const;
  std::shared_ptr<Endpoint> endpoint_of_job() const;
  Result<std::shared_ptr<Endpoint>> open_endpoint(const Config& config);
  Result<std::shared_ptr<Heap>> heap_for(const Config& config);
  void hand_out(const Config& config, std::shared_ptr<FlightRecorder> recorder);

  ProcessLife& life_ = ProcessLife::instance();
  std::atomic<bool> met_others_{false};
  std::atomic<bool> looked_at_settings_{false};
  std::mutex mutex_;
  struct Opened {
    std::weak_ptr<Endpoint> endpoint;
    SecretSetting secret;
    bool has_heap;
  };
  std::vector<Opened> endpoints_;                  // by this process, and not by its parent
  std::optional<SecretSetting> launchers_secret_;  // once it was asked for
  // All that were ever made, as tensors outlive everything: this process's own is the last, if it
  // was made after the last fork (nullptr where the environment wants none). One more with each
  // fork of a child that joins groups.
  std::vector<std::shared_ptr<Heap>> heaps_;
  uint64_t heap_forks_ = 0;  // ProcessLife::forks() when the last was made
  std::vector<std::weak_ptr<Session>> sessions_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::unique_ptr<FlightService> service_;
};

}  // namespace rdmacoll::torch_ext
