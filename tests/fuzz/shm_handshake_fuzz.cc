// Messages of a process that has connected and does not know the job's secret, one after another,
// whoever has dialled, or knocked. An input is a byte, which of these this side has, then whole
// messages.
#include <cstring>

#include "csrc/transport/shm/handshake.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

const ProcessId kMe{1}, kOther{2};

Message message(MessageKind kind) {
  Message message;
  message.kind = kind;
  message.sender = kOther;
  return message;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string all = bytes_of(message(MessageKind::Challenge)) +
                          bytes_of(message(MessageKind::Proof)) +
                          bytes_of(message(MessageKind::Hello));
  const std::string knock = bytes_of(message(MessageKind::Knock));
  return {'\0' + all,   '\1' + all,   '\0' + bytes_of(message(MessageKind::Bye)),
          '\0' + knock, '\1' + knock, '\3' + bytes_of(message(MessageKind::Challenge))};
}

void run(const std::string& bytes) {
  static const JobKey key = JobKey::load("the secret of the job").take();
  if (bytes.empty()) return;
  Handshake handshake(PeerSocket(SoleFd()), ProcessId{3});
  if ((bytes[0] & 1) != 0) {
    handshake.dialled = true;
    handshake.knocks = (bytes[0] & 2) != 0;
    handshake.process = kOther;
  }
  for (size_t at = 1; bytes.size() - at >= sizeof(Message); at += sizeof(Message)) {
    Message message;
    std::memcpy(&message, bytes.data() + at, sizeof(message));
    const Handshake::Next next = handshake.hear(message, key, kMe);
    RDMACOLL_CHECK(next != Handshake::Next::SayHello && next != Handshake::Next::Admit);
    // Only what is said first, by one that has called.
    RDMACOLL_CHECK(next != Handshake::Next::NoteKnock || (!handshake.dialled && at == 1));
    if (next != Handshake::Next::Prove) return;
    RDMACOLL_CHECK(handshake.proof(key, kMe).take().proof != message.proof);
  }
}

}  // namespace rdmacoll::fuzz
