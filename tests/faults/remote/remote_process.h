// RemoteProcess: a process of a case of remote memory: the owner, the reader or the bystander. The
// victim goes on until its fault; the others until they have seen what they must of it, and then
// with all that must still be possible. Floor: tests. Thread: the process's main one; the fault has
// its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "csrc/engine/endpoint.h"
#include "csrc/remote/publication.h"
#include "csrc/remote/remote.h"
#include "tests/faults/remote/remote_case.h"
#include "tests/faults/shared.h"

namespace rdmacoll::faults {

class RemoteProcess {
 public:
  RemoteProcess(const RemoteCase& what, int rank, uint64_t seed, Shared& shared)
      : what_(what), rank_(rank), random_(seed), shared_(shared) {}

  [[noreturn]] void run();

 private:
  // --- remote_process.cc: its life ---------------------------------------------------------------
  void join();
  void open_others();
  void meet(int processes);
  void go_until_the_fault();
  void strike_soon();
  void go_on();
  void end();
  bool is_victim() const { return rank_ == what_.victim; }
  std::vector<int> survivors() const;
  [[noreturn]] void wrong(const std::string& text);
  void raised(const Status& status);

  // --- remote_rounds.cc: what it does over and over ----------------------------------------------
  Status round();
  Status owner_round();
  Status reader_round();
  Status open_and_close();
  Status read_all();
  Status write_and_notify();
  Status read_version();
  void publish_version();
  Status read_until_revoked();
  Status expose_and_revoke();

  // Far off, so that no deadline ends what an end is to end.
  int64_t limit_ms() const;
  Result<OpenedPtr> open(int rank, const std::string& name, int64_t timeout_ms);
  // Waits longer than the work may take. One that goes on all the same is kept, with what it uses.
  Status finish(const WorkPtr& work);

  // --- remote_verdicts.cc: what it must see, and what must still go ------------------------------
  // That it says what has happened, and to whom.
  void check_error(const Status& status);
  Status see_the_end();
  Status see_the_stop();
  void take_the_buffer_back();
  void check_the_buffer();
  // After a stop: what was asked for meanwhile leaves nothing open.
  void see_what_is_open();
  void read_and_write(const std::vector<int>& others);
  std::string victim_name() const { return "rank " + std::to_string(what_.victim); }
  // Until it holds; wrong() if that takes too long.
  void until(const char* what, const std::function<bool()>& holds);

  const RemoteCase what_;
  const int rank_;
  std::mt19937_64 random_;
  Shared& shared_;
  int met_ = 0;
  std::atomic<bool> is_to_leave_{false};

  std::shared_ptr<Endpoint> endpoint_;
  std::shared_ptr<Communicator> group_;
  std::unique_ptr<Remote> remote_;
  RemoteMemoryPtr bytes_;  // that all others read
  RemoteMemoryPtr box_;    // that the reader writes
  std::optional<Publication> model_;
  std::map<int, OpenedPtr> bytes_of_;
  OpenedPtr box_of_owner_;
  OpenedPtr model_of_owner_;

  std::vector<std::byte> buffer_;  // of rounds
  uint64_t counted_ = 0;           // versions read, or notifications written
  WorkPtr going_on_;               // in the buffer, although its time is over
};

}  // namespace rdmacoll::faults
