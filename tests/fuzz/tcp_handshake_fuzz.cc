// What somebody says on a new tcp connection who does not know the job's secret, to whoever dials
// or accepts. An input is a byte (whether this side dials, and whether there is a secret), then
// what is said.
#include <cstring>

#include "csrc/base/printable.h"
#include "csrc/transport/tcp/connection/handshake.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

using tcp::Handshake;

const ProcessId kMe{1}, kOther{2};
constexpr uint8_t kDials = 1, kSecret = 2;

}  // namespace

std::vector<std::string> seeds() {
  tcp::Greeting greeting;
  greeting.from = kOther;
  greeting.to = kMe;
  greeting.streams = 2;
  tcp::Answer answer, welcome;
  welcome.verdict = tcp::Verdict::Welcome;
  std::vector<std::string> all;
  for (const uint8_t secret : {uint8_t{0}, kSecret}) {
    all.push_back(static_cast<char>(secret) + bytes_of(greeting) + bytes_of(Mac{}));
    all.push_back(static_cast<char>(secret | kDials) + bytes_of(answer) + bytes_of(welcome));
  }
  return all;
}

void run(const std::string& bytes) {
  static const JobKey secret = JobKey::load("the secret of the job").take(), none;
  if (bytes.empty()) return;
  const bool dials = (bytes[0] & kDials) != 0, has_secret = (bytes[0] & kSecret) != 0;
  const JobKey& key = has_secret ? secret : none;
  Handshake handshake = dials ? Handshake::dialling({kMe, 1, "me", {}}, kOther, 1, 2, {3})
                              : Handshake::accepting(kMe, 2, {4});
  for (size_t at = 1; bytes.size() - at >= handshake.wants_bytes();) {
    const size_t wanted = handshake.wants_bytes();
    const Handshake::Next next =
        handshake.hear(std::as_bytes(std::span(bytes.data() + at, wanted)), key);
    at += wanted;
    RDMACOLL_CHECK(handshake.take_reply().size() <= sizeof(tcp::Greeting) * (dials ? 2 : 1));
    RDMACOLL_CHECK(!has_secret || (next != Handshake::Next::Met && !handshake.has_proved()));
    if (next == Handshake::Next::Failed) return check_error(handshake.why());
    if (next == Handshake::Next::Met) {
      const std::string host = handshake.dialler().host;
      RDMACOLL_CHECK(host == printable(host));
      RDMACOLL_CHECK(handshake.stream() < 2);
      return;
    }
  }
}

}  // namespace rdmacoll::fuzz
