// Handshake. Floor: transport/shm.
#include "csrc/transport/shm/handshake.h"

#include <cstring>

namespace rdmacoll {
namespace {

constexpr const char* kPurpose = "rdmacoll shm 1";

struct Proven {
  ProcessId prover;
  ProcessId prover_nonce;
  ProcessId verifier;
  ProcessId verifier_nonce;
  uint32_t prover_dialled;
};

Message message_of(MessageKind kind, const ProcessId& me) {
  Message message;
  message.kind = kind;
  message.sender = me;
  return message;
}

}  // namespace

Message Handshake::challenge(const ProcessId& me) const {
  Message message = message_of(MessageKind::Challenge, me);
  std::memcpy(message.proof.data(), nonce_.data(), nonce_.size());
  return message;
}

Message Handshake::knock(const ProcessId& me) const { return message_of(MessageKind::Knock, me); }

Result<Message> Handshake::proof(const JobKey& key, const ProcessId& me) const {
  Message message = message_of(MessageKind::Proof, me);
  const Proven proven{me, nonce_, process, its_nonce_, dialled};
  auto proof = key.sign(kPurpose, bytes_to_sign(proven));
  if (!proof.ok()) return proof.status();
  message.proof = proof.value();
  return message;
}

Handshake::Next Handshake::hear(const Message& message, const JobKey& key, const ProcessId& me) {
  const bool names_itself = heard_ == Heard::Nothing && !dialled;
  if (!names_itself && message.sender != process) return Next::Drop;
  if (knocks) return Next::Drop;  // it listens, so it hears the knock
  if (message.kind == MessageKind::Knock && names_itself) {
    process = message.sender;
    return Next::NoteKnock;
  }
  if (message.kind == MessageKind::Challenge && heard_ == Heard::Nothing) {
    process = message.sender;
    std::memcpy(its_nonce_.data(), message.proof.data(), its_nonce_.size());
    heard_ = Heard::Challenge;
    return Next::Prove;
  }
  if (message.kind == MessageKind::Proof && heard_ == Heard::Challenge) {
    const Proven proven{process, its_nonce_, me, nonce_, !dialled};
    if (!key.holds(kPurpose, bytes_to_sign(proven), message.proof)) return Next::Refuse;
    heard_ = Heard::Proof;
    return Next::SayHello;
  }
  return message.kind == MessageKind::Hello && heard_ == Heard::Proof ? Next::Admit : Next::Drop;
}

}  // namespace rdmacoll
