// The endpoint's life, forks and the way out. Floor: torch_ext/join.
#include "torch_ext/join/process.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/job_key.h"
#include "csrc/engine/connect/group_setup.h"
#include "csrc/engine/known_settings.h"
#include "torch_ext/base/errors.h"

namespace rdmacoll::torch_ext {

// Never destroyed: groups may be let go after the last static destructor.
Process& Process::instance() {
  static Process& process = *new Process;
  return process;
}

Process::Process() {
  pthread_atfork(nullptr, nullptr, [] {
    Process& process = instance();
    new (&process.mutex_) std::mutex;  // another thread of the parent may have held it
    process.sessions_.clear();
    process.endpoints_.clear();
    process.recorder_.reset();
    process.launchers_secret_.reset();  // a child is no rank of the job
    if (FlightService* parents = process.service_.release()) parents->forget();  // and leaked
  });
}

std::shared_ptr<Endpoint> Process::newest_endpoint() const {
  for (auto opened = endpoints_.rbegin(); opened != endpoints_.rend(); ++opened) {
    if (auto endpoint = opened->endpoint.lock()) return endpoint;
  }
  return nullptr;
}

// That no store has a say in: all groups of this process are of its job.
std::shared_ptr<Endpoint> Process::endpoint_of_job() const {
  for (const Opened& opened : endpoints_) {
    if (opened.secret.is_drawn) continue;
    if (auto endpoint = opened.endpoint.lock()) return endpoint;
  }
  return nullptr;
}

std::shared_ptr<Endpoint> Process::endpoint_of(const SecretSetting& secret) const {
  for (const Opened& opened : endpoints_) {
    if (opened.secret.text != secret.text) continue;
    if (auto endpoint = opened.endpoint.lock()) return endpoint;
  }
  return nullptr;
}

Result<std::shared_ptr<Endpoint>> Process::endpoint(const AskSecret& ask_secret) {
  std::optional<SecretSetting> launchers;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (auto endpoint = endpoint_of_job()) return endpoint;
    launchers = launchers_secret_;
  }
  auto config = Config::from_environment();
  if (!config.ok()) return config.status();
  warn_of_unknown_settings(config.value());
  SecretSetting& secret = config.value().secret;
  const bool of_file = !secret.text.empty();
  if (!of_file && launchers) {
    secret = *launchers;
  } else if (!of_file) {
    auto told = ask_secret();  // without the mutex: it may wait, and want the GIL
    if (!told.ok()) return told.status();
    secret = told.take();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!of_file && !secret.is_drawn) launchers_secret_ = secret;
  if (auto endpoint = endpoint_of(secret)) return endpoint;
  return open_endpoint(config.value());
}

Result<std::shared_ptr<Endpoint>> Process::open_endpoint(const Config& config) {
  std::erase_if(endpoints_, [](const Opened& one) { return one.endpoint.expired(); });
  auto heap = heap_for(config);
  if (!heap.ok()) return heap.status();
  // A heap serves the transports of one endpoint at a time.
  const bool heap_is_taken = std::any_of(endpoints_.begin(), endpoints_.end(),
                                         [](const Opened& one) { return one.has_heap; });
  if (heap_is_taken) {
    Log(config.log_level, "heap")
        .write(LogLevel::Warn,
               "groups that meet in another store are still there and have the heap, so the new "
               "group copies what lies in it; destroy them first, or start the job with rdmarun "
               "or with RDMACOLL_SECRET_FILE, where all groups share it");
  }
  auto opened = Endpoint::open(config, heap_is_taken ? nullptr : heap.value());
  if (opened.ok()) {
    const bool has_heap = !heap_is_taken && heap.value() != nullptr;
    endpoints_.push_back({opened.value(), config.secret, has_heap});
    hand_out(config, opened.value()->flight_recorder());
  }
  return opened;
}

Result<Mac> Process::sign(const std::string& text) {
  std::shared_ptr<Endpoint> endpoint;  // let go of without the mutex: it may be the last
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    endpoint = newest_endpoint();
  }
  if (endpoint == nullptr) {
    return Status(StatusCode::InvalidArgument, "there is no group, and so no job to sign for");
  }
  auto key = JobKey::load(endpoint->config().secret.text);
  if (!key.ok()) return key.status();
  return key.value().sign("python", text);
}

void Process::hand_out(const Config& config, std::shared_ptr<FlightRecorder> recorder) {
  recorder_ = recorder;
  if (recorder == nullptr) return;
  if (service_ == nullptr) {
    auto started = FlightService::start(config);
    if (!started.ok()) {
      recorder->log().write(LogLevel::Warn, "rdmacoll debug dump cannot ask this process: " +
                                                started.status().message());
      return;
    }
    service_ = started.take();
  }
  service_->serve(std::move(recorder));
}

std::shared_ptr<FlightRecorder> Process::flight_recorder() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recorder_;
}

Result<std::shared_ptr<Heap>> Process::heap_for(const Config& config) {
  if (!heaps_.empty() && heap_forks_ == life_.forks()) return heaps_.back();
  auto made = Heap::create(config);
  if (made.ok()) {
    heaps_.push_back(made.value());
    heap_forks_ = life_.forks();
  }
  return made;
}

Heap* Process::heap() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!heaps_.empty()) return heap_forks_ == life_.forks() ? heaps_.back().get() : nullptr;
  auto config = Config::from_environment();
  throw_if_failed(config.status());
  return take_or_throw(heap_for(config.value())).get();
}

HeapStats Process::heap_stats() {
  Heap* own = heap();
  return own != nullptr ? own->stats() : HeapStats();
}

Heap* Process::heap_of(const void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto* byte = static_cast<const std::byte*>(data);
  const auto found = std::find_if(heaps_.begin(), heaps_.end(), [&](const auto& heap) {
    return heap != nullptr && heap->holds(byte, 1);
  });
  return found == heaps_.end() ? nullptr : found->get();
}

Result<std::shared_ptr<Session>> Process::join(int rank, int size, Bootstrap& bootstrap,
                                               int64_t timeout_ms, const std::string& algorithm,
                                               const GroupName& name, const AskSecret& ask_secret) {
  auto opened = endpoint(ask_secret);
  if (!opened.ok()) {
    decline_group(bootstrap, opened.status());
    return opened.status();
  }
  auto communicator =
      opened.value()->create_communicator(rank, size, bootstrap, timeout_ms, algorithm, name);
  if (!communicator.ok()) return communicator.status();
  warn_without_secret(opened.value()->config(), rank, size);
  return enlist(communicator.take());
}

std::shared_ptr<Session> Process::enlist(std::shared_ptr<Communicator> communicator) {
  auto session = std::make_shared<Session>(std::move(communicator));
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(sessions_, [](const auto& other) { return other.expired(); });
  sessions_.push_back(session);
  return session;
}

void Process::warn_of_unknown_settings(const Config& config) {
  if (looked_at_settings_.exchange(true) || config.place.local_rank != 0) return;
  const Log log(config.log_level, "settings");
  for (const std::string& line : about_unknown_settings(config.settings))
    log.write(LogLevel::Warn, line);
}

void Process::warn_without_secret(const Config& config, int rank, int size) {
  if (size == 1 || met_others_.exchange(true) || rank != 0 || !config.secret.is_drawn) return;
  Log(config.log_level, "rank 0")
      .write(LogLevel::Warn,
             std::string("this job has no secret") +
                 (config.secret.text.empty() ? "" : " but what its ranks drew") +
                 ": whoever reaches the store in which its ranks meet can take part; start it with "
                 "rdmarun, or name a file with one in RDMACOLL_SECRET_FILE (docs/SECURITY.md)");
}

void Process::quiesce() {
  life_.leave();
  std::vector<std::weak_ptr<Session>> sessions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sessions = sessions_;
  }
  for (const auto& weak : sessions) {
    if (auto session = weak.lock()) session->close("this process is leaving", 0);
  }
  life_.join_ends();  // also of what callbacks let go of just now
}

}  // namespace rdmacoll::torch_ext
