// A grant, with which a peer says where in its heap results are placed: nothing is put beside what
// the region holds. An input is the inline data of the line that brings it.
#include <array>
#include <cstring>

#include "csrc/engine/collective/direct_placement.h"
#include "csrc/plan/selection/select.h"
#include "tests/fuzz/target.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kWorld = 4;
constexpr uint32_t kPeer = 1;
constexpr uint64_t kBlockBytes = 1 << 16;
constexpr uint64_t kHeldBytes = 1 << 20;

// What a rank that sends its blocks does with the grant of its peer.
class Sender {
 public:
  Sender() : block_(layout_.block_bytes() / kLineBytes), links_(layout_, 0, kWorld, mine()) {
    fake_.open_as = {3, nullptr, kHeldBytes};
    for (uint32_t peer = 1; peer < kWorld; ++peer) {
      links_.add(
          peer,
          {.transport = &fake_, .peer = peer, .own_slab = mine(), .own_room = layout_.room(peer)});
    }
    operation_.plan = &plan_;
    operation_.sequence = 1;
    operation_.contiguous = false;
    operation_.block_bytes.assign(2 * kWorld, kBlockBytes);
    operation_.outputs.assign(2 * kWorld, output_.data());
  }

  void run(const std::string& bytes) {
    fake_.opened.clear();  // what it remembers would fill the memory
    DirectPlacement placement(links_, nullptr, clock_, 1);
    placement.begin(operation_, kBlockBytes * kWorld);
    Line& line = *reinterpret_cast<Line*>(base() + layout_.grant(layout_.room(kPeer)));
    line.signature = 0;
    std::memset(line.inline_data, 0, kInlineBytes);
    std::memcpy(line.inline_data, bytes.data(), std::min(bytes.size(), kInlineBytes));
    line.counter = operation_.sequence;
    for (const Step& step : plan_.steps) {
      if (is_sent(step)) line.signature += operation_.message_signature(step.blocks);
    }
    RDMACOLL_CHECK(!placement.is_undecided(kPeer));
    for (const Step& step : plan_.steps) {
      if (!is_sent(step)) continue;
      const auto place = placement.place(kPeer, step.blocks, {.offset = 4096, .bytes = 8192});
      if (!place) continue;
      RDMACOLL_CHECK(place->bytes == 8192 && place->offset <= kHeldBytes - place->bytes);
    }
  }

 private:
  static bool is_sent(const Step& step) {
    return step.kind == StepKind::Signal && step.placed && step.peer == kPeer;
  }
  Region mine() { return {.id = 0, .base = base(), .bytes = layout_.block_bytes()}; }
  std::byte* base() { return reinterpret_cast<std::byte*>(block_.data()); }

  struct alignas(kLineBytes) LineBytes {
    std::byte bytes[kLineBytes];
  };
  const ManualClock clock_;
  const Layout layout_{kWorld, kSlotBytesMin, kStageBytesMin};
  const Plan plan_ =
      make_plan(Collective::AllToAll, Algorithm::Direct, 0, Islands::apart(kWorld), 0);
  FakeTransport fake_{"verbs", ""};
  std::vector<LineBytes> block_;
  PeerLinks links_;
  std::vector<std::byte> output_ = std::vector<std::byte>(kBlockBytes);
  Operation operation_;
};

struct GrantWire {
  uint64_t offset;
  int64_t stride_bytes;
  uint32_t block;
  std::array<char, kShortKeyBytes> key;
};

}  // namespace

std::vector<std::string> seeds() {
  return {bytes_of(GrantWire{4096, kBlockBytes, kWorld, {'k'}}),
          bytes_of(GrantWire{0, 0, 0, {'k'}}), bytes_of(GrantWire{0, 0, 0, {}})};
}

void run(const std::string& bytes) {
  static Sender sender;
  sender.run(bytes);
}

}  // namespace rdmacoll::fuzz
