// Handshake: with a process on the other end of a socket, until it is a peer: what has been said,
// and whether it has proved to know the job's secret. It decides; the transport sends and admits.
// Floor: transport/shm. Thread: under the transport's mutex.
#pragma once

#include <cstdint>
#include <utility>

#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"
#include "csrc/transport/shm/peer_socket.h"

namespace rdmacoll {

// Both sides go the same way: Challenge with a nonce, Proof over both nonces, Hello. A descriptor
// is passed only to who has proved itself. A proof names who made it, for whom, and which of the
// two had dialled. So a proof can neither be replayed on another connection nor reflected.
//
// A process that is to be dialled says Knock instead, and hangs up once it is heard. That proves
// nothing: whoever is knocked at dials the process of that id, and has it prove itself.
class Handshake {
 public:
  enum class Next { Prove, SayHello, Admit, NoteKnock, Refuse, Drop };

  Handshake(PeerSocket connection, const ProcessId& nonce)
      : socket(std::move(connection)), nonce_(nonce) {}

  // What is said first.
  Message challenge(const ProcessId& me) const;
  Message knock(const ProcessId& me) const;
  Result<Message> proof(const JobKey& key, const ProcessId& me) const;
  // What to do about a message.
  Next hear(const Message& message, const JobKey& key, const ProcessId& me);

  PeerSocket socket;
  bool dialled = false;  // by me, to reach `process`
  bool knocks = false;   // dialled only to be dialled by it
  ProcessId process{};   // from what it says first on, if not dialled

 private:
  enum class Heard { Nothing, Challenge, Proof };

  ProcessId nonce_;  // mine
  ProcessId its_nonce_{};
  Heard heard_ = Heard::Nothing;
};

}  // namespace rdmacoll
