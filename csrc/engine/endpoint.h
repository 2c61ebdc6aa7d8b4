// Endpoint: what a process has to reach the others: its transports, its progress, its groups.
// Floor: engine. Thread: any.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/job_key.h"
#include "csrc/base/log.h"
#include "csrc/engine/communicator.h"
#include "csrc/engine/connect/bootstrap.h"
#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/connect/linker_thread.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/thread_progress.h"
#include "csrc/engine/recorder/flight_recorder.h"
#include "csrc/engine/session/sessions.h"
#include "csrc/plan/choice/choices.h"
#include "csrc/plan/choice/tuning.h"

namespace rdmacoll {

// What a config says about algorithms. InvalidArgument names the line of the table and the remedy.
Result<Tuning> tuning_of(const Config& config);
Preference preference_of(const Config& config);

class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  // Opens the transports that the config asks for and reads its table of algorithms, with a heap of
  // its own.
  static Result<std::shared_ptr<Endpoint>> open(const Config& config);
  // The same with a given heap, which an endpoint before it may have had if that is closed.
  // nullptr: without one.
  static Result<std::shared_ptr<Endpoint>> open(const Config& config, std::shared_ptr<Heap> heap);
  // Joins the progress thread and leaves the peers. Every communicator keeps its endpoint alive.
  ~Endpoint() = default;

  // Makes a group of `size` ranks; all of them call it. One exchange over the bootstrap, then
  // connects to peers not yet known. timeout_ms bounds this call, and is the first timeout of the
  // group's operations. algorithm: for this group, on all its ranks, in the place of the config's;
  // empty: the config's.
  Result<std::shared_ptr<Communicator>> create_communicator(int rank, int size,
                                                            Bootstrap& bootstrap,
                                                            int64_t timeout_ms,
                                                            const std::string& algorithm = "",
                                                            const GroupName& name = {});

  const Config& config() const { return config_; }

  // Of this endpoint's groups; nullptr where RDMACOLL_FLIGHT_RECORDS is 0. It outlives the endpoint
  // for whoever keeps it.
  std::shared_ptr<FlightRecorder> flight_recorder() const { return recorder_; }

 private:
  Endpoint(const Config& config, JobKey key, Tuning tuning);
  // The communicator of a group that is set up, with what its groups are shrunk by.
  std::shared_ptr<Communicator> adopt(NewGroup made, const Config& of_group, const GroupName& name,
                                      int64_t timeout_ms);

  const Config config_;
  const JobKey key_;
  const Tuning tuning_;
  const SteadyClock clock_;
  const std::shared_ptr<FlightRecorder> recorder_;
  std::unique_ptr<Transports> transports_;
  std::unique_ptr<Linker> linker_;
  std::unique_ptr<ThreadProgress> progress_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<LinkerThread> linker_thread_;
  std::atomic<bool> said_reach_{false};
};

}  // namespace rdmacoll
