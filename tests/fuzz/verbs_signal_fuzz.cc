// What a peer's device leaves in the signal ring, with the immediate that announces it: it gets
// into a line of this process, and not beside it; the window moves forward, if at all; and an offer
// says what its sender wrote, or makes no sense.
#include <cstring>

#include "csrc/transport/verbs/connection/wire.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

struct Input {
  uint32_t immediate;
  uint64_t before;
  uint64_t rooms[verbs::SignalRing::kRooms];
  verbs::SignalRecord record;
};

}  // namespace

std::vector<std::string> seeds() {
  Input input{};
  input.immediate = verbs::Immediate{5, 17}.pack();
  input.before = 100;
  input.rooms[0] = std::bit_cast<uint64_t>(verbs::WindowWord::of(228));
  input.rooms[1] = std::bit_cast<uint64_t>(verbs::WindowWord::of(356));
  input.record.counter = 1;
  input.record.inline_bytes = kInlineBytes;
  Input offer = input;
  offer.immediate =
      verbs::Immediate{verbs::Immediate::kNoticeRegion, verbs::Immediate::kRegionOffered}.pack();
  offer.record = verbs::OfferNotice{5, 1, {.note = 7, .address = 4096, .bytes = 64}}.record();
  return {bytes_of(input), bytes_of(offer)};
}

void run(const std::string& bytes) {
  Input input{};
  std::memcpy(&input, bytes.data(), std::min(bytes.size(), sizeof(input)));

  const auto immediate = verbs::Immediate::unpack(input.immediate);
  RDMACOLL_CHECK(immediate.pack() == input.immediate);
  RDMACOLL_CHECK(immediate.region <= kMaxRegions && immediate.line < kMaxLinesPerRegion);

  static verbs::SignalRing signal_ring;
  for (uint32_t i = 0; i < verbs::SignalRing::kRooms; ++i) signal_ring.rooms[i] = input.rooms[i];
  RDMACOLL_CHECK(input.before > UINT64_MAX / 2 ||
                 signal_ring.told_room(input.before) >= input.before);

  Line line{};
  input.record.write_to(line);
  RDMACOLL_CHECK(line.counter.load() == input.record.counter);
  RDMACOLL_CHECK(line.credit == input.record.credit);

  if (const auto offer = verbs::OfferNotice::of(input.record)) {
    RDMACOLL_CHECK(offer->rest.note != kNoNote);
    RDMACOLL_CHECK(offer->region < kMaxRegions || offer->region == kNoRegion);
    const auto again = verbs::OfferNotice::of(offer->record());
    RDMACOLL_CHECK(again && bytes_of(again->rest) == bytes_of(offer->rest));
  }
}

}  // namespace rdmacoll::fuzz
