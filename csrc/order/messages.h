// What ranks tell the sequencer, and what it tells them, as bytes. Each message has any number of
// parts. Floor: order. Thread: values.
//
//   to the sequencer   Submit {request} · Ready {names that are known, a bit each} · Join {} ·
//                      Ask {} who is late
//   from it            Decide {slot, agreed} · Run {names that are known, a bit each} ·
//                      Refuse {name, why} · JoinEnded {rank} · Late {to whom it answers, names}
//
// A name that all ranks have submitted once has a slot, unless it is not to be kept. Then a rank
// says all of a submission by one bit, and the sequencer answers by one, as long as nothing else
// than the tensors' values has changed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/status.h"
#include "csrc/order/agreed.h"
#include "csrc/order/named_request.h"

namespace rdmacoll {

inline constexpr uint32_t kNoSlot = UINT32_MAX;
// Names that are remembered. More of them work, too: each of their submissions is said in full.
inline constexpr uint32_t kSlotsMax = 8192;

enum class ToSequencer : uint8_t { Submit = 1, Ready, Join, Ask };
inline constexpr ToSequencer kLastToSequencer = ToSequencer::Ask;
enum class FromSequencer : uint8_t { Decide = 1, Run, Refuse, JoinEnded, Late };
inline constexpr FromSequencer kLastFromSequencer = FromSequencer::Late;

// Slots, a bit each, in ascending order.
class SlotSet {
 public:
  void add(uint32_t slot) { words_[slot / 64] |= uint64_t{1} << slot % 64; }
  bool empty() const { return words_.empty(); }
  std::vector<uint32_t> slots() const;
  void write(ByteWriter& writer) const;
  // Empty unless the reader is good.
  static SlotSet read(ByteReader& reader);

 private:
  std::map<uint32_t, uint64_t> words_;  // by the number of the word
};

// What some ranks have submitted and others have not.
struct Unsubmitted {
  std::string name;               // for people
  std::vector<uint32_t> missing;  // ranks
};
struct Late {
  uint32_t asked_by = 0;
  std::vector<Unsubmitted> names;  // the first kLateNamesMax
  uint32_t more = 0;               // names besides
};
inline constexpr size_t kLateNamesMax = 16;

// Each is to be looked at only if the reader is good: then it makes sense, and is written as the
// same bytes again.
void write(ByteWriter& writer, const NamedRequest& request);
NamedRequest read_named_request(ByteReader& reader);
void write(ByteWriter& writer, const Agreed& agreed);
Agreed read_agreed(ByteReader& reader);
void write(ByteWriter& writer, const Late& late);
Late read_late(ByteReader& reader);

// That a message is not what this version writes.
Status malformed(const std::string& from);

}  // namespace rdmacoll
