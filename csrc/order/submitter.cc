// Submitter. Floor: order.
#include "csrc/order/submitter.h"

#include <utility>

#include "csrc/base/printable.h"

namespace rdmacoll {
namespace {

Status malformed_from_sequencer() { return malformed("rank 0 of the group"); }

}  // namespace

Status Submitter::submit(const NamedRequest& request, Bytes& message) {
  if (has_joined_) {
    return Status(StatusCode::InvalidArgument,
                  "\"" + request.name +
                      "\" was submitted after join() on this rank; nothing may be "
                      "until join() has ended");
  }
  if (!makes_sense(request)) {
    return Status(StatusCode::InvalidArgument,
                  "\"" + request.name +
                      "\" has sizes that make no sense: none may be below 0, what is cut into rows "
                      "needs a first dimension, and only an alltoall has splits");
  }
  const auto [at, is_new] = in_flight_.try_emplace(request.name);
  if (!is_new) {
    return Status(StatusCode::InvalidArgument,
                  "\"" + request.name +
                      "\" was submitted on this rank before, and has not ended; "
                      "wait for that, or give this operation another name");
  }
  at->second.request = request;
  ByteWriter writer(message);
  const auto known = known_.find(request.name);
  if (known != known_.end() && known->second.own == request) {
    writer.put(ToSequencer::Ready);
    SlotSet slot;
    slot.add(known->second.slot);
    slot.write(writer);
  } else {
    writer.put(ToSequencer::Submit);
    write(writer, request);
  }
  return Status();
}

Status Submitter::join(Bytes& message) {
  if (has_joined_) {
    return Status(StatusCode::InvalidArgument, "join() was called again before it has ended");
  }
  has_joined_ = true;
  ByteWriter(message).put(ToSequencer::Join);
  return Status();
}

Status Submitter::take(std::span<const std::byte> message, std::vector<Decision>& decisions) {
  ByteReader reader(message);
  while (!reader.at_end()) {
    const auto part = reader.up_to(kLastFromSequencer);
    Status taken;
    if (part == FromSequencer::Decide) {
      taken = decided(reader, decisions);
    } else if (part == FromSequencer::Run) {
      taken = run(reader, decisions);
    } else if (part == FromSequencer::Refuse) {
      taken = refused(reader, decisions);
    } else if (part == FromSequencer::JoinEnded) {
      taken = join_ended(reader, decisions);
    } else if (part == FromSequencer::Late) {
      taken = late(reader, decisions);
    } else {
      return malformed_from_sequencer();
    }
    RDMACOLL_RETURN_IF_ERROR(taken);
  }
  return reader.is_good() ? Status() : malformed_from_sequencer();
}

// Of what was decided. A rank that has not submitted it has joined: nobody else is decided without.
Result<bool> Submitter::is_own(const std::string& name) {
  const auto found = in_flight_.find(name);
  const bool is_own = found != in_flight_.end() && !found->second.is_decided;
  if (!is_own && !has_joined_) return malformed_from_sequencer();
  if (is_own) found->second.is_decided = true;
  return is_own;
}

Status Submitter::decided(ByteReader& reader, std::vector<Decision>& decisions) {
  const auto slot = reader.get<uint32_t>();
  auto agreed = std::make_shared<const Agreed>(read_agreed(reader));
  if (!reader.is_good()) return malformed_from_sequencer();
  const std::string& name = agreed->request.name;
  Result<bool> own = is_own(name);
  if (!own.ok()) return own.status();
  if (own.value() && !agrees(in_flight_.at(name).request, agreed->request))
    return malformed_from_sequencer();
  if (slot != kNoSlot) {
    if (slot >= kSlotsMax || slot > names_.size() || (slot < names_.size() && names_[slot] != name))
      return malformed_from_sequencer();
    if (slot == names_.size()) names_.push_back(name);
    Known& known = known_[name];
    known.slot = slot;
    known.agreed = agreed;
    if (own.value()) known.own = in_flight_.at(name).request;
  }
  decisions.push_back(
      {.what = Decision::What::Run, .name = name, .is_own = own.value(), .agreed = agreed});
  return Status();
}

Status Submitter::run(ByteReader& reader, std::vector<Decision>& decisions) {
  const SlotSet slots = SlotSet::read(reader);
  for (const uint32_t slot : slots.slots()) {
    const auto known = slot < names_.size() ? known_.find(names_[slot]) : known_.end();
    if (known == known_.end()) return malformed_from_sequencer();
    Result<bool> own = is_own(names_[slot]);
    if (!own.ok()) return own.status();
    if (own.value() && known->second.own != in_flight_.at(names_[slot]).request)
      return malformed_from_sequencer();
    decisions.push_back({.what = Decision::What::Run,
                         .name = names_[slot],
                         .is_own = own.value(),
                         .agreed = known->second.agreed});
  }
  return Status();
}

Status Submitter::join_ended(ByteReader& reader, std::vector<Decision>& decisions) {
  const auto last = reader.get<uint32_t>();
  if (!reader.is_good() || !has_joined_) return malformed_from_sequencer();
  has_joined_ = false;
  decisions.push_back({.what = Decision::What::JoinEnded, .last_joined = last});
  return Status();
}

Status Submitter::late(ByteReader& reader, std::vector<Decision>& decisions) {
  Late late = read_late(reader);
  if (!reader.is_good()) return malformed_from_sequencer();
  decisions.push_back({.what = Decision::What::Late, .late = std::move(late)});
  return Status();
}

Status Submitter::refused(ByteReader& reader, std::vector<Decision>& decisions) {
  const std::string name = reader.text();
  const auto code = reader.up_to(StatusCode::System);
  const std::string why = printable(reader.text());
  if (!reader.is_good() || code == StatusCode::Ok || why.empty()) return malformed_from_sequencer();
  Result<bool> own = is_own(name);
  if (!own.ok()) return own.status();
  known_.erase(name);
  // A rank that has joined has not asked for it.
  if (!own.value()) return Status();
  decisions.push_back(
      {.what = Decision::What::Refused, .name = name, .is_own = true, .why = Status(code, why)});
  return Status();
}

}  // namespace rdmacoll
