// ShmTransport: the data path. No lock, no allocation; a system call only to ring a sleeper, and
// now and then in poll(). Floor: transport/shm.
#include <atomic>
#include <cstring>

#include "csrc/memory/copy.h"
#include "csrc/transport/shm/transport.h"

namespace rdmacoll {
namespace {

// poll() reads the clock every so many calls, and asks the kernel about dead peers at most so
// often.
constexpr uint32_t kPollsPerClock = 32;
constexpr int64_t kCheckEveryNs = 1'000'000;

// A store of mine, then a load of the other's flag; the sleeper stores its flag, then loads what I
// stored. Without a full fence on both sides each may load before its own store is seen (x86 does
// that too), and the sleeper sleeps through the signal. Not std::atomic_thread_fence, which gcc
// rejects under ThreadSanitizer.
void full_fence() { __sync_synchronize(); }

void ring_if_asleep(const Control& control, const WakeFd& wake_fd) {
  full_fence();
  if (control.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
    wake_fd.ring();
}

// Of memory that its owner may be writing: word by word, from the first, so that each is whole.
void copy_words(std::byte* to, const std::byte* from, uint64_t bytes) {
  using Word = uint64_t;
  const bool aligned = reinterpret_cast<uintptr_t>(from) % sizeof(Word) == 0;
  const uint64_t words = aligned ? bytes / sizeof(Word) : 0;
  for (uint64_t i = 0; i < words; ++i) {
    const Word word =
        reinterpret_cast<const std::atomic<Word>*>(from)[i].load(std::memory_order_acquire);
    std::memcpy(to + i * sizeof(Word), &word, sizeof(Word));
  }
  const uint64_t done = words * sizeof(Word);
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace

Peer& ShmTransport::peer_at(PeerId id) const {
  Peer* peer = peers_.at(id);
  RDMACOLL_CHECK(peer != nullptr);
  return *peer;
}

OpenRegion& ShmTransport::opened(PeerId peer, RegionId region) const {
  OpenRegion* open = peer_at(peer).regions.at(region);
  RDMACOLL_CHECK(open != nullptr);
  return *open;
}

Posted ShmTransport::put(PeerId peer, uint8_t, LocalSlice source, RemoteSlice destination,
                         Ticket*) {
  const Region& region = opened(peer, destination.region).view;
  RDMACOLL_CHECK(source.bytes == destination.bytes);
  RDMACOLL_CHECK(region.holds(destination.offset, destination.bytes));
  if (source.bytes > 0)
    copy_bytes(region.base + destination.offset, source.data, source.bytes, source.stores);
  return Posted::Done;
}

Posted ShmTransport::get(PeerId peer, uint8_t, RemoteSlice source, LocalSlice destination,
                         Ticket*) {
  const Region& region = opened(peer, source.region).view;
  RDMACOLL_CHECK(source.bytes == destination.bytes);
  RDMACOLL_CHECK(region.holds(source.offset, source.bytes));
  const std::byte* const from = region.base + source.offset;
  if (source.bytes < kBulkBytes) {
    copy_words(destination.data, from, source.bytes);
  } else {
    copy_bytes(destination.data, from, source.bytes, destination.stores);
    std::atomic_thread_fence(std::memory_order_acquire);  // what is read next was read later
  }
  return Posted::Done;
}

// Where its owner lets others only read, the mapping refuses it as it does a put.
Posted ShmTransport::update(PeerId peer, uint8_t, RemoteSlice word, const Update& update,
                            LocalSlice before, Ticket*) {
  const Region& region = opened(peer, word.region).view;
  RDMACOLL_CHECK(word.bytes == kWordBytes && before.bytes == kWordBytes);
  RDMACOLL_CHECK(word.offset % kWordBytes == 0 && region.holds(word.offset, kWordBytes));
  const uint64_t was = update.apply_to(region.base + word.offset);
  std::memcpy(before.data, &was, sizeof(was));
  return Posted::Done;
}

Posted ShmTransport::signal(PeerId peer_id, uint8_t, RemoteSlice slice, uint64_t counter,
                            const Header& header) {
  const Region& region = opened(peer_id, slice.region).view;
  RDMACOLL_CHECK(slice.offset % kLineBytes == 0 && region.holds(slice.offset, kLineBytes));
  RDMACOLL_CHECK(header.inline_bytes <= kInlineBytes);
  store(*reinterpret_cast<Line*>(region.base + slice.offset), counter, header);
  const Peer& peer = peer_at(peer_id);
  ring_if_asleep(peer.control(), peer.wake_fd);
  return Posted::Done;
}

void ShmTransport::poll() {
  if (++polls_ % kPollsPerClock != 0) return;
  const int64_t now_ns = clock_.now_ns();
  if (now_ns < next_check_ns_) return;
  next_check_ns_ = now_ns + kCheckEveryNs;
  check_failures();
}

int ShmTransport::arm() {
  self().control().asleep.store(1, std::memory_order_relaxed);
  full_fence();  // see ring_if_asleep
  return wake_set_.get();
}

void ShmTransport::disarm() {
  self().control().asleep.store(0, std::memory_order_relaxed);
  self().wake_fd.drain();
  check_failures();
}

}  // namespace rdmacoll
