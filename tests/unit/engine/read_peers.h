// ReadPeers: the blocks of a group's ranks, rank 0's own and those that it reads through a
// transport that answers as the test says. Floor: tests.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/engine/channel/peer_links.h"
#include "csrc/memory/shared_segment.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll {

class ReadPeers {
 public:
  enum class Answer : uint8_t { AtOnce, Later, Refuses, IsGone };

  // met: ranks below this one are met from the start.
  explicit ReadPeers(uint32_t world, uint32_t met = UINT32_MAX)
      : layout(world, kSlotBytesMin, kStageBytesMin), blocks_(blocks_of(world, layout)) {
    mine = {.id = 0, .base = blocks_[0].data(), .bytes = layout.block_bytes()};
    links.emplace(layout, 0, world, mine);
    for (uint32_t rank = 1; rank < std::min(world, met); ++rank) meet(rank);
    transport_.on_get = [this](PeerId peer, RemoteSlice source, LocalSlice destination,
                               Ticket* ticket) { return get(peer, source, destination, ticket); };
  }
  ReadPeers(const ReadPeers&) = delete;

  const Layout layout;
  Region mine;
  std::optional<PeerLinks> links;

  void meet(uint32_t rank) {
    links->add(rank, {.transport = &transport_,
                      .peer = rank,
                      .block = {.id = rank, .bytes = layout.block_bytes()},
                      .own_slab = mine,
                      .own_room = layout.room(links->count() + 1)});
  }

  std::map<uint32_t, Answer> answers;  // of a rank; at once, unless it is said
  uint64_t gets = 0;                   // that were posted

  std::byte* block(uint32_t rank) { return blocks_[rank].data(); }
  // What was asked of the ranks that answer later.
  void deliver() {
    for (const auto& copy : std::exchange(under_way_, {})) copy();
    delivered_.store(gets);
  }

 private:
  Posted get(PeerId peer, RemoteSlice source, LocalSlice destination, Ticket* ticket) {
    const Answer answer = answers[peer];
    if (answer == Answer::Refuses) return Posted::Full;
    ++gets;
    if (answer == Answer::IsGone) return Posted::Done;
    EXPECT_EQ(source.region, peer);
    EXPECT_EQ(source.bytes, destination.bytes);
    const auto copy = [from = block(peer) + source.offset, destination] {
      std::memcpy(destination.data, from, destination.bytes);
    };
    if (answer == Answer::AtOnce) {
      copy();
      return Posted::Done;
    }
    under_way_.push_back(copy);
    *ticket = Ticket(delivered_, gets);
    return Posted::Pending;
  }

  static std::vector<SharedSegment> blocks_of(uint32_t world, const Layout& layout) {
    std::vector<SharedSegment> blocks;
    for (uint32_t rank = 0; rank < world; ++rank) {
      blocks.push_back(SharedSegment::create(layout.block_bytes()).take());
    }
    return blocks;
  }

  std::vector<SharedSegment> blocks_;
  FakeTransport transport_{"fake", ""};
  std::vector<std::function<void()>> under_way_;
  std::atomic<uint64_t> delivered_{0};  // up to this get
};

}  // namespace rdmacoll
