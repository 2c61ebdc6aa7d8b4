// Session: this process and another one, which fail alone: what they ask each other, and what this
// one reads and writes of the other's memory. Where the other ends, what is in flight to it fails,
// and nothing else. Requests are answered by the other's linker thread, whatever its program is at;
// reads and writes need nobody there, but where bytes move in poll() alone.
// Floor: engine/session. Thread: any; what is said to be, the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/engine/channel/link.h"
#include "csrc/engine/channel/port.h"
#include "csrc/engine/recorder/session_log.h"
#include "csrc/engine/session/landings.h"
#include "csrc/engine/session/message.h"
#include "csrc/engine/session/staging.h"
#include "csrc/engine/session/transfer.h"
#include "csrc/engine/work/work.h"
#include "csrc/memory/shared_segment.h"

namespace rdmacoll {

class Session : public std::enable_shared_from_this<Session> {
 public:
  // How much memory this process gives the other of such a transport.
  static uint64_t own_bytes(const TransportInfo& info);
  // The link's slab is the other's memory for this process, its own slab the one for the other:
  // that memory is kept as long as the session, whose lines are read also once it has ended.
  Session(const Link& link, std::shared_ptr<const SharedSegment> own_memory, const Clock& clock,
          std::string name, SessionLog log);

  const Link& link() const { return link_; }
  // For people, of the other process: what this one calls it.
  std::string name() const;
  void set_name(const std::string& name);
  // What the other calls itself; taken for want of a better name.
  void introduce(const std::string& name);
  static constexpr const char* kUnnamed = "the process that asked for a session";
  // Ok, or why nothing can be done with it any more.
  Status failure() const;

  // --- what any thread hands to the driver (sessions.h tells it) --------------------------------
  // The status is failure()'s; if it is not Ok, nothing is taken.
  Status submit(RequestPtr request);
  Status submit(std::unique_ptr<Transfer> transfer);
  void reply(uint32_t number, const Status& status, std::string text);
  // Tells the other that this process does not use the session. False: it cannot, as something is
  // under way.
  bool say_close();
  // Tells the other that it does.
  void say_keep();
  // Both have said so: nothing is begun any more, and it ends once all that was said is sent.
  void close();
  bool is_closed() const { return shared_.is_closed.load(std::memory_order_acquire); }
  // The other has sent so many messages, mod 2^16, or more. Some of them may come later than the
  // note that says so.
  void note_told(uint16_t messages) { shared_.told.store(messages, std::memory_order_release); }
  // Something is under way, or about to be.
  bool is_busy() const;

  // A line in which the other notifies this process; nullopt: all for this use are taken.
  enum class LineUse : uint8_t { Notify, Stop };
  std::optional<uint32_t> take_line(LineUse use);
  // Of one that counts notifications: the other writes to it no more.
  void give_line_back(uint32_t line);
  // The counter that the line has reached.
  uint64_t counter(uint32_t line) const {
    return line_at(line).counter.load(std::memory_order_acquire);
  }

  // --- the driver -------------------------------------------------------------------------------
  // What the other has said that is for the linker: a request, to be answered by reply(), or what
  // is about the session itself.
  struct Asked {
    MessageHead::Kind kind;
    uint32_t number;
    std::string text;
  };
  bool advance(std::vector<Completion>& finished, std::vector<Asked>& asked);
  // Deadlines.
  void check(std::vector<Completion>& finished, int64_t now_ns);
  // Whether the other has ended, or the session is closed; then everything has failed.
  bool has_ended(std::vector<Completion>& finished);
  void fail(const Status& why, std::vector<Completion>& finished);
  // How many messages have been sent, if the other is to be told, by a note, that it is more.
  std::optional<uint16_t> take_sent() {
    const uint64_t before = std::exchange(told_, port_.announced());
    return told_ == before ? std::nullopt : std::optional(static_cast<uint16_t>(told_));
  }
  // Requests and transfers that have not ended, and messages that are about to come.
  size_t in_flight() const { return asked_for() + messages_due(); }
  // Whether memory of this process is still read or written for it.
  bool is_under_way() const;

 private:
  void say(MessageHead::Kind kind);
  bool has_work() const;
  size_t asked_for() const { return awaited_.size() + transfers_.size() + outgoing_.size(); }
  size_t messages_due() const;
  struct Outgoing {
    MessageHead head;
    std::string text;
    RequestPtr request;  // of a request
  };
  Line& line_at(uint32_t line) const;
  bool take_submissions();
  bool send();
  bool take_messages(std::vector<Completion>& finished, std::vector<Asked>& asked);
  bool move(std::vector<Completion>& finished);
  void end(Transfer& transfer, std::vector<Completion>& finished);
  // Of a request or a transfer.
  template <typename Asked>
  void finish(const Asked& asked, const Status& how, std::vector<Completion>& finished) {
    log_.end(asked.record, how);
    finished.push_back({asked.work, how});
  }

  const Link link_;
  const std::shared_ptr<const SharedSegment> own_memory_;
  const Clock& clock_;

  mutable std::mutex mutex_;  // what follows
  std::string name_;
  Status failure_;
  std::vector<Outgoing> new_messages_;
  std::vector<std::unique_ptr<Transfer>> new_transfers_;
  std::vector<bool> lines_taken_;
  uint32_t requests_ = 0;

  struct Shared {
    std::atomic<bool> is_driven{false};  // something that was submitted is under way
    std::atomic<bool> is_closed{false};
    std::atomic<uint16_t> told{0};
  } shared_;        // by the driver and the linker
  SessionLog log_;  // the driver's, from here on, but for its name
  Port port_;
  Staging staging_;
  Landings landings_;
  uint64_t told_ = 0;  // of the messages sent
  std::deque<Outgoing> outgoing_;
  std::map<uint32_t, RequestPtr> awaited_;  // by number
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

using SessionPtr = std::shared_ptr<Session>;

}  // namespace rdmacoll
