// Frame: what a connection carries once two processes have met. Floor: transport/tcp/connection.
// Thread: values.
//
// A head of 32 bytes, then `bytes` of a body or of payload. Its tag is a SipHash, under the
// connection's key, of the head, of the body, and of how many frames went before on this
// connection: a frame of a stranger, a repeated and a left out one do not hold. Payload is not
// covered (docs/SECURITY.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/limits.h"
#include "csrc/base/siphash.h"
#include "csrc/memory/region.h"
#include "csrc/transport/tcp/settings/settings.h"

namespace rdmacoll::tcp {

enum class FrameKind : uint8_t {
  Put = 1,        // payload: to `offset` of the receiver's region
  Got = 2,        // payload: the answer to Get `number`
  Signal = 3,     // body: SignalBody, for the line at `offset`
  Get = 4,        // body: GetBody, from `offset` of the receiver's region
  Mark = 5,       // body: MarkBody
  Closed = 6,     // body: RegionNotice: the sender has closed this region of the receiver
  Withdrawn = 7,  // body: RegionNotice: this region of the sender is not to be opened any more
  Bye = 8,        // no body: the sender leaves; nothing follows
  Offered = 9,    // body: OfferBody: this region of the sender may be opened, or kNoRegion
  Update = 10,    // body: UpdateBody, for the word at `offset` of the receiver's region
  Updated = 11,   // body: what was there: the answer to Update `number`
};

struct FrameHead {
  FrameKind kind{};
  uint8_t reserved = 0;
  uint16_t generation = 0;  // of the region, its low bits
  RegionId region = kNoRegion;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  uint32_t number = 0;  // of a Get or Update; of a Put into what is lent: which use of it is meant
  uint64_t tag = 0;
};
static_assert(sizeof(FrameHead) == 32);

struct SignalBody {
  uint64_t counter;
  uint32_t signature;
  uint32_t length_and_sequence;
  uint32_t credit;
  uint32_t reserved;
  std::byte inline_data[kInlineBytes];  // as much as counts
  uint32_t padding;                     // never sent
};
inline constexpr uint32_t kSignalHeadBytes = 24;
static_assert(offsetof(SignalBody, inline_data) == kSignalHeadBytes);

// Gets and updates of one process that the other has not answered.
inline constexpr uint32_t kMostGets = 128;

struct GetBody {
  uint32_t bytes;
};

struct UpdateBody {
  uint64_t operand;
  uint64_t expected;
  uint64_t kind;
};

// How many Puts went before on each of the other connections between the two processes. What
// follows the mark waits until they have come.
struct MarkBody {
  uint32_t puts[kMaxStreams - 1];
};

struct RegionNotice {
  uint64_t generation;
};

// With the region's id what is needed to make its key again; zeros where there is none.
struct OfferBody {
  uint64_t note;
  uint64_t generation;
  uint64_t bytes;
};

inline constexpr size_t kMaxBodyBytes = kSignalHeadBytes + kInlineBytes;
static_assert(sizeof(MarkBody) <= kMaxBodyBytes && sizeof(OfferBody) <= kMaxBodyBytes);

inline bool is_known(FrameKind kind) {
  return kind >= FrameKind::Put && kind <= FrameKind::Updated;
}
inline bool has_payload(FrameKind kind) { return kind == FrameKind::Put || kind == FrameKind::Got; }

// body: of a frame without payload, head.bytes.
inline uint64_t tag_of(const SipKey& key, uint64_t number, const FrameHead& head,
                       const void* body) {
  uint64_t words[3];
  std::memcpy(words, &head, sizeof(words));
  SipHash hash(key);
  hash.add(number).add(words[0]).add(words[1]).add(words[2]);
  return hash.finish(body, has_payload(head.kind) ? 0 : head.bytes);
}
static_assert(offsetof(FrameHead, tag) == 24);

}  // namespace rdmacoll::tcp
