// Request: what another process is asked. Transfer: a read or a write of its memory that is under
// way: what it moves, and when it has ended, each kind says in a file of its own. Floor:
// engine/session. Thread: the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/engine/recorder/flight_kind.h"
#include "csrc/engine/recorder/session_log.h"
#include "csrc/engine/session/mover.h"
#include "csrc/engine/work/work.h"

namespace rdmacoll {

// A request, and what comes back. The reply may be read once the work has ended well.
struct Request {
  WorkPtr work;
  std::string text;
  std::string reply{};
  int64_t deadline_ns = 0;
  // How it ends, by how it was answered, and with what; nullptr: as it was answered.
  std::function<Status(const Status& answered, const std::string& reply)> verdict{};
  FlightKind kind = FlightKind::Request;  // None: it is asked again, which is not noted
  SessionRecord record{};                 // the driver's
};
using RequestPtr = std::shared_ptr<Request>;

class Transfer {
 public:
  virtual ~Transfer() = default;

  enum class State : uint8_t {
    Waits,  // nothing could be done now
    Moved,  // something was
    Ended,  // status() says how
  };
  // A round.
  virtual State advance(const Way& way) = 0;
  // Whether the transport may still read or write memory of this process for it: then it cannot be
  // ended by anybody but the transport.
  virtual bool is_under_way() const = 0;
  // It will not be gone on with, and is not under way.
  virtual void let_go([[maybe_unused]] const Way& way) {}
  // The line of the peer in which it is still to notify of what it has written.
  virtual std::optional<uint32_t> notifies() const { return std::nullopt; }
  // For the flight recorder. 0 bytes: it moves none.
  struct What {
    FlightKind kind;
    uint64_t bytes = 0;
  };
  virtual What what() const = 0;
  // For people: "read of 4096 bytes".
  std::string describe() const {
    const What it = what();
    const std::string name = flight_kind_name(it.kind);
    return it.bytes == 0 ? name : name + " of " + std::to_string(it.bytes) + " bytes";
  }

  const Status& status() const { return status_; }

  WorkPtr work;
  int64_t asked_ns = 0;  // when it was asked for; 0: nobody has looked at the clock
  int64_t deadline_ns = 0;
  // What is looked at when it has ended well; nullptr: nothing is.
  std::function<Status()> verdict{};
  // What the other process is asked once it has ended well, of the same work, which ends with the
  // reply; nullptr: nothing is.
  RequestPtr then{};
  SessionRecord record{};  // the driver's

 protected:
  Status status_;
};

}  // namespace rdmacoll
