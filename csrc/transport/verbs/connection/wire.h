// What goes over the wire besides users' data: the immediate and the record of a signal, the
// window word, and the handshake by which two processes join their queue pairs.
// Floor: transport/verbs/connection. Thread: values.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "csrc/base/job_key.h"
#include "csrc/base/process_id.h"
#include "csrc/memory/region.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/connection/address.h"
#include "csrc/transport/verbs/device/limits.h"

namespace rdmacoll::verbs {

// The 32 bits of an immediate: which line a signal wrote, or a notice.
struct Immediate {
  static constexpr uint32_t kLineBits = 20;
  static constexpr RegionId kNoticeRegion = kMaxRegions;  // never a region's id
  static constexpr uint32_t kGoodbye = 1;
  static constexpr uint32_t kMark = 2;  // the puts before it on this stripe have come
  // With a record (RegionNotice): the sender has closed a region of the receiver, and nothing of it
  // will come there any more; or it will not open it.
  static constexpr uint32_t kRegionClosed = 3;
  // With a record: a region of the sender is not to be opened any more. Where it is not open the
  // answer is kRegionClosed.
  static constexpr uint32_t kRegionWithdrawn = 4;
  // With a record (OfferNotice): a region of the sender may be opened; or a note alone.
  static constexpr uint32_t kRegionOffered = 5;

  RegionId region = 0;
  uint32_t line = 0;  // index in the region; of a notice, which

  uint32_t pack() const { return region << kLineBits | line; }
  static Immediate unpack(uint32_t bits) {
    return {bits >> kLineBits, bits & ((1u << kLineBits) - 1)};
  }
  bool is_notice() const { return region == kNoticeRegion; }
};
static_assert(kMaxLinesPerRegion == 1u << Immediate::kLineBits);
static_assert(kMaxRegions + 1 == 1u << (32 - Immediate::kLineBits));

// What a signal writes: into the next place of a ring at the receiver and not into the line itself,
// because a line may be signalled again before the first signal to it was taken (credits are).
// Sent up to its last inline byte.
struct alignas(kLineBytes) SignalRecord {
  uint64_t counter;
  uint32_t signature;
  uint32_t length_and_sequence;
  uint32_t returned;  // signals of the receiver that the sender has made room for again, mod 2^32
  uint32_t credit;    // Header's
  uint8_t stripes;    // bit j: a mark on stripe j precedes this signal
  uint8_t inline_bytes;
  uint16_t reserved;
  std::byte inline_data[kInlineBytes];

  uint32_t sent_bytes() const { return kHeadBytes + inline_bytes; }
  // The line it is meant for, which is seen once its counter is.
  void write_to(Line& line) const {
    line.signature = signature;
    line.length_and_sequence = length_and_sequence;
    std::memcpy(line.inline_data, inline_data, std::min<size_t>(inline_bytes, kInlineBytes));
    line.credit = credit;
    line.counter.store(counter, std::memory_order_release);
  }
  static constexpr uint32_t kHeadBytes = 28;
};
static_assert(offsetof(SignalRecord, inline_data) == SignalRecord::kHeadBytes);

// Which region a notice is about, in the record that comes with it.
struct RegionNotice {
  RegionId region = kNoRegion;
  uint64_t generation = 0;

  SignalRecord record() const {
    SignalRecord record{};
    record.counter = generation;
    record.length_and_sequence = region;
    return record;
  }
  static RegionNotice of(const SignalRecord& record) {
    return {record.length_and_sequence, record.counter};
  }
};

// With it all that the key of a region says; zeros where it is kNoRegion.
struct OfferNotice {
  RegionId region = kNoRegion;
  uint64_t generation = 0;
  struct Rest {
    uint64_t note = 0;
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint32_t rkey = 0;
    uint32_t reserved = 0;
  } rest{};
  static_assert(sizeof(Rest) == 32 && sizeof(Rest) <= kInlineBytes);

  SignalRecord record() const {
    SignalRecord record = RegionNotice{region, generation}.record();
    record.inline_bytes = sizeof(rest);
    std::memcpy(record.inline_data, &rest, sizeof(rest));
    return record;
  }
  // nullopt: it makes no sense.
  static std::optional<OfferNotice> of(const SignalRecord& record) {
    const RegionNotice about = RegionNotice::of(record);
    OfferNotice offer{about.region, about.generation};
    std::memcpy(&offer.rest, record.inline_data, sizeof(offer.rest));
    const bool sound = offer.rest.note != kNoNote && record.inline_bytes == sizeof(offer.rest) &&
                       (offer.region < kMaxRegions || offer.region == kNoRegion);
    return sound ? std::optional(offer) : std::nullopt;
  }
};
inline constexpr uint32_t kSignalBytesMax = SignalRecord::kHeadBytes + kInlineBytes;

// A count that a peer writes into this process's memory while it is read: with its complement, so
// that half of a new one and half of an old one are told apart.
struct WindowWord {
  uint32_t returned = 0;
  uint32_t complement = ~uint32_t{0};

  static WindowWord of(uint64_t returned) {
    const auto low = static_cast<uint32_t>(returned);
    return {low, ~low};
  }
  bool whole() const { return returned == ~complement; }
};
static_assert(sizeof(WindowWord) == 8);

// The larger count whose low bits are `low`, or `before` if that is the newer one.
inline uint64_t advance_to(uint64_t before, uint32_t low) {
  const auto step = static_cast<uint32_t>(low - static_cast<uint32_t>(before));
  return step < 1u << 31 ? before + step : before;
}

// What a process gives each of its peers to write to, registered: a ring of the peer's signal
// records, and words in which the peer tells of room when no record does, by turns. Two may be on
// their way at once (the window is two of kTellEvery), in no order: in one place they could mix for
// good.
struct SignalRing {
  static constexpr uint32_t kRooms = 2;
  static_assert(kRooms * kTellEvery == kReceiveDepth);

  SignalRecord records[kReceiveDepth];
  std::atomic<uint64_t> rooms[kRooms];  // WindowWords

  // The newest that is whole, of a count that was `before`.
  uint64_t told_room(uint64_t before) const {
    for (const std::atomic<uint64_t>& room : rooms) {
      const auto word = std::bit_cast<WindowWord>(room.load(std::memory_order_relaxed));
      if (word.whole()) before = advance_to(before, word.returned);
    }
    return before;
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);

// By datagram, so it may be lost; said again until both sides are done.
struct Hello {
  enum class Knows : uint8_t {
    Nothing,  // the sender has not heard of the receiver
    Yours,    // it has joined its queue pairs to the receiver's
    Both,     // and knows that the receiver has, too: no answer is due
    Refuses,  // it cannot join, and has said why on its side: no answer is due
  };
  static constexpr uint64_t kMagic = 0x36306C6C6F63726Dull;  // version 06

  uint64_t magic = kMagic;
  ProcessId from{};
  ProcessId to{};
  uint64_t signal_ring_address = 0;  // of the SignalRing that the receiver may write to
  uint32_t signal_ring_rkey = 0;
  uint32_t packet_sequence = 0;  // the first one of all the sender's queue pairs
  uint32_t stripes = 0;
  uint32_t numbers[kMaxStripes] = {};
  Knows knows = Knows::Nothing;
  uint8_t reserved = 0;
  uint16_t offers = 0;  // that the sender has made to the receiver so far, mod 2^16
  // How the sender is reached, and what it is called.
  std::array<uint8_t, 16> gid{};
  uint32_t listener = 0;
  uint32_t listener_key = 0;
  uint32_t pid = 0;
  uint16_t lid = 0;
  uint8_t mtu = 0;
  uint8_t is_ethernet = 0;
  char host[64] = {};  // ends with a zero
  // Of all before it, with the job's secret. Both processes are named by what they drew at random
  // when they opened: so it holds between these two alone, and said again it says nothing new.
  Mac signature{};

  static Hello from_process(const Address& sender);
  Address sender() const;

  Status sign(const JobKey& key) {
    auto made = key.sign(kPurpose, signed_part());
    if (made.ok()) signature = made.value();
    return made.status();
  }
  bool holds(const JobKey& key) const { return key.holds(kPurpose, signed_part(), signature); }

 private:
  static constexpr const char* kPurpose = "rdmacoll verbs 1";

  std::string_view signed_part() const {
    return {reinterpret_cast<const char*>(this), offsetof(Hello, signature)};
  }
};
static_assert(sizeof(Hello) == 224 && std::has_unique_object_representations_v<Hello>);

inline Hello Hello::from_process(const Address& sender) {
  Hello hello;
  hello.from = sender.process;
  std::copy_n(sender.port.gid.raw, hello.gid.size(), hello.gid.begin());
  hello.listener = sender.listener;
  hello.listener_key = sender.listener_key;
  hello.pid = sender.pid;
  hello.lid = sender.port.lid;
  hello.mtu = sender.port.mtu;
  hello.is_ethernet = sender.port.is_ethernet ? 1 : 0;
  sender.host.copy(hello.host, sizeof(hello.host) - 1);
  return hello;
}

inline Address Hello::sender() const {
  const std::string_view name(host, sizeof(host));
  Address address{.process = from,
                  .pid = pid,
                  .host = std::string(name.substr(0, name.find('\0'))),
                  .port = {.lid = lid, .mtu = mtu, .is_ethernet = is_ethernet != 0},
                  .listener = listener,
                  .listener_key = listener_key};
  std::copy(gid.begin(), gid.end(), address.port.gid.raw);
  return address;
}

// nullopt: not one of this version. Anybody who knows the listener may send anything.
inline std::optional<Hello> parse_hello(const std::byte* data, size_t bytes) {
  Hello hello;
  if (bytes != sizeof(hello)) return std::nullopt;
  std::memcpy(&hello, data, sizeof(hello));
  const bool sound =
      hello.magic == Hello::kMagic && hello.stripes > 0 && hello.stripes <= kMaxStripes;
  return sound ? std::optional(hello) : std::nullopt;
}

}  // namespace rdmacoll::verbs
