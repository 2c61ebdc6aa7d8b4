// Mount. Floor: fuse_ext. Thread: any.
#include "fuse_ext/mount.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "csrc/base/printable.h"
#include "fuse_ext/operations.h"

namespace rdmacoll::fuse {
namespace {

constexpr size_t kMostThreads = 64;
constexpr size_t kMostErrors = 1024;

// Ends a thread's wait for the next request.
int wake_signal() { return SIGRTMAX - 3; }

void let_signal_wake() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(wake_signal(), &action, nullptr);
}

}  // namespace

Mount::Mount(std::shared_ptr<files::Tables> tables, pybind11::object names)
    : tables_(std::move(tables)),
      names_(std::move(names)),
      drafts_(*tables_, names_),
      fuse_(libfuse()) {}

Mount::~Mount() { stop(); }

void Mount::start(const std::string& folder, const std::string& name) {
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  const std::string options = "fsname=" + name + ",subtype=rdmacoll";
  for (const char* const one : {"rdmacoll", "-o", options.c_str()}) fuse_.opt_add_arg(&args, one);
  static const fuse_lowlevel_ops all = operations();
  session_ = fuse_.session_new(&args, &all, sizeof(all), this);
  fuse_.opt_free_args(&args);
  if (session_ == nullptr) throw std::runtime_error("libfuse3 has refused the session");
  if (fuse_.session_mount(session_, folder.c_str()) != 0) {
    fuse_.session_destroy(session_);
    session_ = nullptr;
    throw std::runtime_error("the folder could not be mounted");
  }
  let_signal_wake();
  run_one_more();
}

void Mount::run_one_more() {
  const std::lock_guard lock(mutex_);
  if (threads_.size() == kMostThreads) return;
  ++running_;
  ++idle_;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {  // the machine has no more: those that there are go on
    --running_;
    --idle_;
    if (threads_.empty()) throw std::runtime_error("no thread can be started");
  }
}

// One of them always waits for the next request, unless all wait for something else.
void Mount::run() {
  fuse_buf buffer = {};
  while (!fuse_.session_exited(session_)) {
    const int received = fuse_.session_receive_buf(session_, &buffer);
    if (received == -EINTR || received == -EAGAIN) continue;
    if (received <= 0) break;
    if (--idle_ == 0) run_one_more();
    fuse_.session_process_buf(session_, &buffer);
    ++idle_;
  }
  std::free(buffer.mem);
  --running_;
}

// What programs have written, and not closed yet, is stored: they cannot do it any more.
void Mount::store_all() {
  for (const auto& draft : nodes_.drafts(nullptr)) {
    try {
      draft->store();
    } catch (const Problem& problem) {
      std::fprintf(stderr,
                   "rdmacoll mount: %s is lost, as it was open and could not be stored: %s\n",
                   printable(draft->place().name).c_str(), problem.why.c_str());
    }
  }
}

void Mount::stop() {
  if (session_ == nullptr) return;
  fuse_.session_exit(session_);
  fuse_.session_unmount(session_);
  while (running_ > 0) {
    {
      const std::lock_guard lock(mutex_);
      for (std::thread& thread : threads_) pthread_kill(thread.native_handle(), wake_signal());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  store_all();
  fuse_.session_destroy(session_);
  session_ = nullptr;
}

std::string Mount::error_of(const Place& place) {
  const std::lock_guard lock(mutex_);
  const auto found = errors_.find({place.folder, place.name});
  return found == errors_.end() ? "" : found->second;
}

void Mount::note_error(const Place& place, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why.empty()) {
    errors_.erase({place.folder, place.name});
  } else if (errors_.size() < kMostErrors) {
    errors_[{place.folder, place.name}] = why;
  }
}

}  // namespace rdmacoll::fuse
