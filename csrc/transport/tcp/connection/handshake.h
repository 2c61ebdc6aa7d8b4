// Handshake: what two processes say on a new connection before it carries frames, on one side of
// it. It decides; half_open.h reads and writes.
// Floor: transport/tcp/connection. Thread: under the transport's mutex.
//
//   dialler   -> Greeting   its id, whom it wants, a nonce             128 bytes
//   acceptor  -> Answer     a nonce, and its proof                      64 bytes
//   dialler   -> Proof      its own                                     32 bytes
//   acceptor  -> Answer     Welcome                                     64 bytes
//
// A proof is an HMAC under the job's secret over the greeting, both nonces, and who of the two made
// it: it cannot be replayed on another connection, nor reflected. The key of the frames
// (frame.h) is another one over the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"
#include "csrc/base/siphash.h"
#include "csrc/base/status.h"
#include "csrc/transport/tcp/connection/address.h"

namespace rdmacoll::tcp {

inline constexpr uint8_t kWireVersion = 5;

struct Greeting {
  std::array<char, 7> magic{'r', 'd', 'm', 'a', 't', 'c', 'p'};
  uint8_t version = kWireVersion;
  ProcessId from{};
  ProcessId to{};
  ProcessId nonce{};
  uint8_t stream = 0;  // which of the connections between the two
  uint8_t streams = 1;
  std::array<uint8_t, 2> reserved{};
  uint32_t pid = 0;             // for people
  std::array<char, 64> host{};  // the same; ends with a zero
};
static_assert(sizeof(Greeting) == 128 && std::has_unique_object_representations_v<Greeting>);

enum class Verdict : uint32_t {
  GoOn = 1,
  Welcome = 2,
  OtherVersion = 3,
  NotMe = 4,         // another process listens here
  OtherStreams = 5,  // RDMACOLL_TCP_STREAMS differs
  NoProof = 6,       // the dialler's did not hold
  KnownAlready = 7,  // this process has, or had, a connection with the dialler
  Busy = 8,          // this process dials the other itself
};

struct Answer {
  std::array<char, 7> magic{'r', 'd', 'm', 'a', 't', 'c', 'p'};
  uint8_t version = kWireVersion;
  Verdict verdict = Verdict::GoOn;
  uint32_t reserved = 0;
  ProcessId nonce{};
  Mac proof{};
};
static_assert(sizeof(Answer) == 64);

// Keys of what both sides of a connection send.
struct FrameKeys {
  SipKey out;
  SipKey in;
};

class Handshake {
 public:
  enum class Next {
    Reply,   // send reply(), if there is any, and read on
    Met,     // the same, and this side is done
    Failed,  // the same, and hang up: why() says why
  };

  // me: without endpoints.
  static Handshake dialling(const Address& me, const ProcessId& whom, uint8_t stream,
                            uint8_t streams, const ProcessId& nonce);
  static Handshake accepting(const ProcessId& me, uint8_t streams, const ProcessId& nonce);

  // What the other side says next.
  size_t wants_bytes() const;
  Next hear(std::span<const std::byte> said, const JobKey& key);
  // An acceptor that has met somebody it will not have.
  void refuse(Verdict verdict);
  std::string take_reply() { return std::exchange(reply_, {}); }

  bool dials() const { return dials_; }
  // A dialler's proof is out, to one that has proved itself: it may count on the connection.
  bool has_proved() const { return stage_ == Stage::Welcome; }
  // From the greeting on.
  const ProcessId& other() const { return dials_ ? greeting_.to : greeting_.from; }
  // Of one that has dialled, as it says: without endpoints.
  Address dialler() const;
  uint8_t stream() const { return greeting_.stream; }
  const FrameKeys& keys() const { return keys_; }
  // Of one that failed.
  const Status& why() const { return why_; }

 private:
  enum class Stage { Greeting, Answer, Proof, Welcome };

  // What is signed.
  struct Transcript {
    Greeting greeting;
    ProcessId answer_nonce;
  };

  Next hear_greeting(const Greeting& greeting, const JobKey& key);
  Next hear_answer(const Answer& answer, const JobKey& key);
  Next hear_proof(const Mac& proof, const JobKey& key);
  Next hear_welcome(const Answer& answer);
  Next fail(Status why);
  Next fail_saying(Verdict verdict, Status why);
  Status check_answer(const Answer& answer) const;
  Result<Mac> proof(const JobKey& key, bool of_dialler) const;
  Status make_keys(const JobKey& key);
  void say(const Answer& answer);

  bool dials_ = false;
  Stage stage_ = Stage::Greeting;
  ProcessId me_{};
  ProcessId own_nonce_{};
  ProcessId answer_nonce_{};
  uint8_t streams_ = 1;
  Greeting greeting_;
  FrameKeys keys_;
  std::string reply_;
  Status why_;
};

}  // namespace rdmacoll::tcp
