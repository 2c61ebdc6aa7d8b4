// Sessions: those of this process, by the processes they are with. One is made when either side
// asks for it, and the other need not: its linker answers. Each gives the other memory of its own
// and offers it with a note (session_note.h); who has the other's opens it, and the session is
// there. Two processes have one session, until one of them ends or neither has used it for a while.
// Floor: engine/session. Thread: any, but for what the driver and the linker call.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/connect/link_guest.h"
#include "csrc/engine/connect/linker.h"
#include "csrc/engine/connect/transports.h"
#include "csrc/engine/drive/driven.h"
#include "csrc/engine/drive/progress.h"
#include "csrc/engine/session/known_sessions.h"
#include "csrc/engine/session/session.h"

namespace rdmacoll {

// Who answers what other processes ask this one.
class Responder {
 public:
  virtual ~Responder() = default;
  // In the linker's thread; it may take a while. What it returns goes back.
  virtual Result<std::string> answer(const SessionPtr& session, const std::string& text) = 0;
  // The other process has ended, or the session is closed, as neither uses it.
  virtual void note_end(const SessionPtr& session) = 0;
};

class Sessions final : public Driven, public LinkGuest {
 public:
  // All of these outlive it.
  Sessions(Transports& transports, Linker& linker, Progress& progress, const Clock& clock,
           std::shared_ptr<FlightRecorder> recorder = nullptr);
  ~Sessions() override;

  // nullptr: what is asked has to wait, until there is one or its asker has ended.
  void answer_by(Responder* responder);

  // The session with the process of an address, which `name` names to people. Who holds it uses it:
  // it stays open. Timeout: there is none yet, and it is under way until the deadline.
  Result<SessionPtr> look(const std::string& address, const std::string& name, Deadline deadline);
  // The same, but waits until there is one.
  Result<SessionPtr> meet(const std::string& address, const std::string& name, Deadline deadline,
                          const InterruptCheck& interrupt);
  // Ends the work once it is true, which is asked in every round of the driver.
  struct Watch {
    WorkPtr work;
    int64_t deadline_ns = 0;
    std::function<bool()> is_true;
    std::string what;  // for people, of what did not come in time
    // How it ends once it is true; nullptr: well.
    std::function<Status()> verdict{};
    // In the flight recorder.
    FlightKind kind = FlightKind::Wait;
    SessionRecord record{};  // the driver's
  };
  void submit(Watch watch);
  // For the flight recorder: the caller waits for the session's other process, though nothing that
  // it has asked for is under way.
  FlightWaitGuard note_wait(const Session& session, FlightKind kind) const {
    return log_.wait(kind, session.name());
  }
  int64_t now_ns() const { return clock_.now_ns(); }
  // How many there are.
  uint64_t count() const {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }
  // Hands the request to the session's driver.
  Status submit(Session& session, RequestPtr request);
  Status submit(Session& session, std::unique_ptr<Transfer> transfer);

  // --- the driver -------------------------------------------------------------------------------
  bool advance(std::vector<Completion>& finished) override;
  void check(std::vector<Completion>& finished) override;
  void close(std::vector<Completion>& finished) override;
  bool beat() override;

  // --- the linker -------------------------------------------------------------------------------
  void hear(const Transports::Offer& offer) override;
  bool turn() override;

 private:
  using Peer = KnownSessions::Peer;
  struct Meeting {
    std::string address;  // "": the other has begun
    std::string name;
    int64_t until_ns = 0;
    int64_t look_for_calls_ns = 0;
    Status last{};
    std::optional<Path> path{};
    Region own{};  // once it is offered
    std::shared_ptr<SharedSegment> own_memory{};
    std::optional<Transports::Offer> theirs{};
    uint16_t told = 0;  // messages that the other has sent already
  };
  struct Asked {
    SessionPtr session;
    Session::Asked what;
  };
  // Not before there is something to drive: every round of every operation would look at it.
  void begin_to_be_driven();
  Status go_on(Meeting& meeting);
  Status find(Meeting& meeting) const;
  Result<SessionPtr> open(const Meeting& meeting);
  void give_up(const Meeting& meeting);
  bool may_begin_anew(const Peer& peer);
  bool answer_asked();
  void answer(const Asked& asked);
  // What is about the session itself.
  void hear_close(KnownSession& known);
  void hear_keep(KnownSession& known);
  void close(KnownSession& known);
  void close_idle();
  bool release_ended();
  void take_new();
  void check_ends(std::vector<Completion>& finished);
  void note_new();
  void finish(const Watch& watch, const Status& how, std::vector<Completion>& finished);

  Transports& transports_;
  Linker& linker_;
  Progress& progress_;
  const Clock& clock_;

  std::once_flag begun_;
  std::atomic<int64_t> look_for_idle_ns_{0};
  SessionLog log_;  // of what is not of one session; the driver's

  std::mutex set_up_mutex_;  // what follows; never the driver's
  Responder* responder_ = nullptr;
  std::vector<std::unique_ptr<Meeting>> meetings_;
  KnownSessions known_;
  std::map<std::string, Status> failed_;  // meetings that came to nothing, until who waits has seen

  mutable std::mutex mutex_;     // what follows; locked after the other
  std::vector<SessionPtr> new_;  // and not driven yet
  std::vector<Watch> new_watches_;
  std::vector<SessionPtr> live_;   // made, and not ended
  std::vector<Asked> asked_;       // and not answered yet
  std::vector<SessionPtr> ended_;  // and not released yet

  std::vector<SessionPtr> driven_;  // the driver's, and what follows
  std::vector<Watch> watches_;
};

}  // namespace rdmacoll
