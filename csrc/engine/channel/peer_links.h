// PeerLinks: which ranks of its group this rank has met, and how it reaches them. It meets those
// that it needs: the driver says whom it wants, and whoever meets ranks (connect/linker.h) adds
// them. For a rank that is not met it costs a pointer.
// Floor: engine/channel. Thread: what is said to be the driver's, or of whoever meets ranks; the
// rest any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/engine/channel/layout.h"
#include "csrc/engine/channel/met_peer.h"
#include "csrc/memory/region.h"

namespace rdmacoll {

class PeerLinks {
 public:
  // The block is this rank's own, and zeroed.
  PeerLinks(Layout layout, uint32_t rank, uint32_t world, Region block);
  ~PeerLinks();
  PeerLinks(const PeerLinks&) = delete;
  PeerLinks& operator=(const PeerLinks&) = delete;

  const Layout& layout() const { return layout_; }
  uint32_t rank() const { return rank_; }
  uint32_t world() const { return world_; }
  const Region& block() const { return block_; }

  // nullptr: it is not met. A rank has met itself. What it points to lives as long as this.
  MetPeer* at(uint32_t rank) const { return by_rank_[rank].load(std::memory_order_acquire); }
  // Why the rank cannot be met, or has left although this rank has met it. Ok: it is met, or may
  // be.
  Status failure_of(uint32_t rank) const;
  // Whether the peer, which is met, has said its last word to the group: nothing that it wrote
  // comes behind it. It says so before its user hears of it, so what was read from its heap before
  // is good; after that its user may write there.
  bool has_given_up(uint32_t rank) const;
  // How many are met, but for this rank itself.
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  bool all_met() const { return count() + 1 == world_; }
  // Whether every peer that maps this rank's block maps its heap, too: a zero-copy message in place
  // of a stage is read by all of them.
  bool all_map_mine() const { return all_map_mine_.load(std::memory_order_acquire); }
  // Whether some peer is reached over a transport that reads any memory: what goes there need not
  // lie in the heap.
  bool some_read_any_memory() const { return some_read_any_.load(std::memory_order_acquire); }
  // Whether the memory of some peer is not mapped.
  bool some_are_remote() const { return some_are_remote_.load(std::memory_order_acquire); }

  // --- the driver -------------------------------------------------------------------------------
  // This rank needs that one. What comes of it is told by at() and failure_of().
  void want(uint32_t rank);
  Port& port(uint8_t channel, uint32_t rank) const { return at(rank)->ports[channel]; }
  // Those that were met since the last time.
  std::vector<uint32_t> take_new();

  // --- whoever meets ranks ----------------------------------------------------------------------
  // Is told when somebody is wanted; in the driver, which it must not hold up.
  void when_wanted(std::function<void()> told);
  // Is told when a rank was met, or cannot be.
  void when_changed(std::function<void()> told);
  std::vector<uint32_t> take_wanted();
  void add(uint32_t rank, const Link& link);
  void fail(uint32_t rank, Status why);

 private:
  const Layout layout_;
  const uint32_t rank_;
  const uint32_t world_;
  const Region block_;
  std::vector<std::atomic<MetPeer*>> by_rank_;
  std::atomic<uint32_t> count_{0};
  std::atomic<bool> all_map_mine_{true};
  std::atomic<bool> some_read_any_{false};
  std::atomic<bool> some_are_remote_{false};
  std::atomic<bool> has_failures_{false};
  uint32_t taken_ = 0;  // how many take_new() has told of; the driver's

  mutable std::mutex mutex_;                   // what follows
  std::vector<std::unique_ptr<MetPeer>> met_;  // by MetPeer::index
  std::vector<uint32_t> wanted_;               // and not taken yet
  std::map<uint32_t, Status> failures_;        // by rank
  std::function<void()> when_wanted_;
  std::function<void()> when_changed_;
};

}  // namespace rdmacoll
