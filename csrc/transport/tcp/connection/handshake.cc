// Handshake. Floor: transport/tcp/connection.
#include "csrc/transport/tcp/connection/handshake.h"

#include <cstring>
#include <utility>

#include "csrc/base/check.h"
#include "csrc/base/printable.h"

namespace rdmacoll::tcp {
namespace {

constexpr const char* kDiallerPurpose = "rdmacoll tcp 1 dials";
constexpr const char* kAcceptorPurpose = "rdmacoll tcp 1 accepts";
constexpr const char* kFramePurpose = "rdmacoll tcp 1 frames";

template <typename T>
T read(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

template <typename T>
std::string bytes_of(const T& value) {
  return std::string(bytes_to_sign(value));
}

Status other_version(uint8_t version) {
  return Status(StatusCode::Mismatch, "it speaks version " + std::to_string(version) +
                                          " of rdmacoll's tcp protocol, this process version " +
                                          std::to_string(kWireVersion) +
                                          "; install the same rdmacoll on all hosts");
}

Status no_proof() {
  return Status(
      StatusCode::Mismatch,
      std::string("it did not prove that it knows the secret of this job; ") + kAboutSecrets);
}

}  // namespace

Handshake Handshake::dialling(const Address& me, const ProcessId& whom, uint8_t stream,
                              uint8_t streams, const ProcessId& nonce) {
  Handshake made;
  made.dials_ = true;
  made.stage_ = Stage::Answer;
  made.me_ = me.process;
  made.greeting_.from = me.process;
  made.greeting_.pid = me.pid;
  me.host.copy(made.greeting_.host.data(), made.greeting_.host.size() - 1);
  made.greeting_.to = whom;
  made.greeting_.nonce = nonce;
  made.greeting_.stream = stream;
  made.greeting_.streams = streams;
  made.reply_ = bytes_of(made.greeting_);
  return made;
}

Address Handshake::dialler() const {
  const std::string_view host(greeting_.host.data(), greeting_.host.size());
  return {greeting_.from, greeting_.pid, printable(host.substr(0, host.find('\0'))), {}};
}

Handshake Handshake::accepting(const ProcessId& me, uint8_t streams, const ProcessId& nonce) {
  Handshake made;
  made.me_ = me;
  made.streams_ = streams;
  made.own_nonce_ = nonce;
  return made;
}

size_t Handshake::wants_bytes() const {
  switch (stage_) {
    case Stage::Greeting:
      return sizeof(Greeting);
    case Stage::Proof:
      return sizeof(Mac);
    default:
      return sizeof(Answer);
  }
}

Handshake::Next Handshake::hear(std::span<const std::byte> said, const JobKey& key) {
  RDMACOLL_CHECK(said.size() == wants_bytes());
  switch (stage_) {
    case Stage::Greeting:
      return hear_greeting(read<Greeting>(said), key);
    case Stage::Answer:
      return hear_answer(read<Answer>(said), key);
    case Stage::Proof:
      return hear_proof(read<Mac>(said), key);
    default:
      return hear_welcome(read<Answer>(said));
  }
}

Handshake::Next Handshake::hear_greeting(const Greeting& greeting, const JobKey& key) {
  if (greeting.magic != Greeting{}.magic) {
    return fail(Status(StatusCode::Mismatch, "it does not speak rdmacoll's tcp protocol"));
  }
  if (greeting.version != kWireVersion) {
    return fail_saying(Verdict::OtherVersion, other_version(greeting.version));
  }
  greeting_ = greeting;
  if (greeting.to != me_) {
    return fail_saying(Verdict::NotMe,
                       Status(StatusCode::Mismatch, "it wants another process than this one"));
  }
  if (greeting.streams != streams_ || greeting.stream >= streams_) {
    return fail_saying(Verdict::OtherStreams,
                       Status(StatusCode::Mismatch, "it has another RDMACOLL_TCP_STREAMS"));
  }
  answer_nonce_ = own_nonce_;
  auto mine = proof(key, false);
  if (!mine.ok()) return fail(mine.status());
  Answer answer;
  answer.nonce = own_nonce_;
  answer.proof = mine.value();
  say(answer);
  stage_ = Stage::Proof;
  return Next::Reply;
}

Status Handshake::check_answer(const Answer& answer) const {
  if (answer.magic != Answer{}.magic) {
    return Status(StatusCode::PeerFailed, "what listens there is not rdmacoll");
  }
  switch (answer.verdict) {
    case Verdict::GoOn:
    case Verdict::Welcome:
      break;
    case Verdict::OtherVersion:
      return other_version(answer.version);
    case Verdict::NotMe:
      return Status(StatusCode::PeerFailed, "another process listens there");
    case Verdict::OtherStreams:
      return Status(StatusCode::Mismatch,
                    "it has another RDMACOLL_TCP_STREAMS; set it alike on all ranks");
    case Verdict::NoProof:
      return no_proof();
    case Verdict::KnownAlready:
      return Status(StatusCode::PeerFailed, "it has met this process before, and lost it");
    default:
      return Status(StatusCode::PeerFailed, "it dials this process itself");
  }
  if (answer.version != kWireVersion) return other_version(answer.version);
  return Status();
}

Handshake::Next Handshake::hear_answer(const Answer& answer, const JobKey& key) {
  if (Status bad = check_answer(answer); !bad.ok()) return fail(std::move(bad));
  answer_nonce_ = answer.nonce;
  auto its = proof(key, false);
  auto mine = proof(key, true);
  if (!its.ok() || !mine.ok()) return fail(its.ok() ? mine.status() : its.status());
  // Said before the other's proof is looked at, so that both sides learn that their secrets differ.
  reply_.assign(reinterpret_cast<const char*>(mine.value().data()), mine.value().size());
  if (!equal(its.value(), answer.proof)) return fail(no_proof());
  if (Status made = make_keys(key); !made.ok()) return fail(std::move(made));
  stage_ = Stage::Welcome;
  return Next::Reply;
}

Handshake::Next Handshake::hear_proof(const Mac& said, const JobKey& key) {
  auto its = proof(key, true);
  if (!its.ok()) return fail(its.status());
  if (!equal(its.value(), said)) return fail_saying(Verdict::NoProof, no_proof());
  if (Status made = make_keys(key); !made.ok()) return fail(std::move(made));
  Answer welcome;
  welcome.verdict = Verdict::Welcome;
  say(welcome);
  return Next::Met;
}

Handshake::Next Handshake::hear_welcome(const Answer& answer) {
  if (Status bad = check_answer(answer); !bad.ok()) return fail(std::move(bad));
  if (answer.verdict == Verdict::Welcome) return Next::Met;
  return fail(Status(StatusCode::PeerFailed, "what listens there breaks rdmacoll's protocol"));
}

void Handshake::refuse(Verdict verdict) {
  Answer answer;
  answer.verdict = verdict;
  reply_.clear();
  say(answer);
}

Handshake::Next Handshake::fail(Status why) {
  why_ = std::move(why);
  return Next::Failed;
}

Handshake::Next Handshake::fail_saying(Verdict verdict, Status why) {
  refuse(verdict);
  return fail(std::move(why));
}

Result<Mac> Handshake::proof(const JobKey& key, bool of_dialler) const {
  return key.sign(of_dialler ? kDiallerPurpose : kAcceptorPurpose,
                  bytes_to_sign(Transcript{greeting_, answer_nonce_}));
}

Status Handshake::make_keys(const JobKey& key) {
  auto made = key.sign(kFramePurpose, bytes_to_sign(Transcript{greeting_, answer_nonce_}));
  if (!made.ok()) return made.status();
  SipKey keys[2];
  static_assert(sizeof(keys) == sizeof(Mac));
  std::memcpy(keys, made.value().data(), sizeof(keys));
  keys_ = dials_ ? FrameKeys{keys[0], keys[1]} : FrameKeys{keys[1], keys[0]};
  return Status();
}

void Handshake::say(const Answer& answer) { reply_ += bytes_of(answer); }

}  // namespace rdmacoll::tcp
