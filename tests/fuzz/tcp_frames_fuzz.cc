// Frames of a process of the job, in pieces, as FrameReader takes them; tags hold, but where a step
// says otherwise. Payload only gets where the taker says, and in its length.
#include <algorithm>

#include "tests/fuzz/target.h"
#include "tests/fuzz/tcp_steps.h"
#include "tests/unit/tcp/wire.h"

namespace rdmacoll::fuzz {
namespace {

using tcp::FrameHead;
using tcp::FrameKind;

constexpr uint8_t kBadTag = 1, kInPieces = 2;

}  // namespace

std::vector<std::string> seeds() {
  const TcpStep put{kInPieces, {.kind = FrameKind::Put, .region = 3, .offset = 9}, "payload"};
  const TcpStep signal{0, {.kind = FrameKind::Signal}, std::string(tcp::kSignalHeadBytes, 's')};
  const TcpStep later{0, {.kind = FrameKind::Mark}, std::string(28, 'm')};
  const TcpStep offer{
      0, {.kind = FrameKind::Offered, .region = 3}, bytes_of(tcp::OfferBody{7, 1, 64})};
  const TcpStep update{
      0, {.kind = FrameKind::Update, .region = 3}, bytes_of(tcp::UpdateBody{1, 0, 0})};
  const TcpStep updated{0, {.kind = FrameKind::Updated, .number = 1}, "8 bytes!"};
  const TcpStep bad{kBadTag, {.kind = FrameKind::Bye}, ""};
  return {put.encode() + signal.encode() + later.encode() + put.encode(),
          signal.encode() + bad.encode(), offer.encode() + offer.encode(),
          update.encode() + updated.encode()};
}

void run(const std::string& bytes) {
  tcp::Wire wire(64);
  bool asked = false;  // marks are heard when they are asked for once more
  wire.taker.verdict = [&](const FrameHead& head) {
    asked = !asked;
    return head.kind == FrameKind::Mark && asked ? tcp::FrameTaker::Heard::Later
                                                 : tcp::FrameTaker::Heard::Done;
  };
  std::string_view input = bytes;
  TcpStep step;
  for (uint64_t number = 0; TcpStep::take(&input, &step); ++number) {
    const uint64_t signed_as = number + ((step.what & kBadTag) != 0);
    const std::string said = step.frame(tcp::kWireKey, signed_as);
    const size_t piece = (step.what & kInPieces) != 0 ? 7 : said.size();
    for (size_t at = 0; at < said.size(); at += piece) {
      const size_t count = std::min(piece, said.size() - at);
      RDMACOLL_CHECK(::send(wire.far.get(), said.data() + at, count, MSG_DONTWAIT) ==
                     static_cast<ssize_t>(count));
      while (wire.reader.waits()) {
        if (!wire.reader.resume(wire.taker)) return;
      }
      if (wire.read() == tcp::FrameReader::Read::Broken) return;
    }
    for (const tcp::Taken& one : wire.taker.frames) {
      RDMACOLL_CHECK(one.body.size() == one.head.bytes && one.head.tag != 0);
    }
    wire.taker.frames.clear();
  }
}

}  // namespace rdmacoll::fuzz
