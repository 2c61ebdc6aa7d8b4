// Sequencer. Floor: order.
#include "csrc/order/sequencer.h"

#include <algorithm>
#include <utility>

#include "csrc/base/printable.h"

namespace rdmacoll {
namespace {

std::string rank_text(uint32_t rank) { return "rank " + std::to_string(rank); }

// Of the first rank that has submitted it; one has.
const NamedRequest& first_of(const std::vector<NamedRequestPtr>& by_rank) {
  return **std::find_if(by_rank.begin(), by_rank.end(),
                        [](const NamedRequestPtr& request) { return request != nullptr; });
}

}  // namespace

Sequencer::Sequencer(uint32_t ranks) : ranks_(ranks), joined_(ranks) {}

Status Sequencer::take(uint32_t rank, std::span<const std::byte> message) {
  ByteReader reader(message);
  while (!reader.at_end()) {
    const auto part = reader.up_to(kLastToSequencer);
    Status taken;
    if (part == ToSequencer::Submit) {
      NamedRequest request = read_named_request(reader);
      if (reader.is_good()) taken = submit(rank, std::move(request));
    } else if (part == ToSequencer::Ready) {
      const SlotSet slots = SlotSet::read(reader);
      if (reader.is_good()) taken = submit_known(rank, slots);
    } else if (part == ToSequencer::Join) {
      taken = join(rank);
    } else if (part == ToSequencer::Ask) {
      answer(rank);
    } else {
      return malformed(rank_text(rank));
    }
    RDMACOLL_RETURN_IF_ERROR(taken);
  }
  return reader.is_good() ? Status() : malformed(rank_text(rank));
}

Status Sequencer::submit(uint32_t rank, NamedRequest request) {
  if (request.kind == NamedKind::AllToAll && request.splits.size() != ranks_)
    return malformed(rank_text(rank));
  std::unique_ptr<Name>& name = names_[request.name];
  if (name == nullptr) {
    name = std::make_unique<Name>();
    name->name = request.name;
    name->submitted.resize(ranks_);
    name->last.resize(ranks_);
  }
  if (joined_[rank] || name->submitted[rank] != nullptr) return malformed(rank_text(rank));
  name->has_changed = true;
  add(rank, *name, std::make_shared<const NamedRequest>(std::move(request)));
  return Status();
}

Status Sequencer::submit_known(uint32_t rank, const SlotSet& slots) {
  for (const uint32_t slot : slots.slots()) {
    if (joined_[rank] || slot >= slots_.size()) return malformed(rank_text(rank));
    Name& name = *slots_[slot];
    if (name.submitted[rank] != nullptr || name.last[rank] == nullptr)
      return malformed(rank_text(rank));
    add(rank, name, name.last[rank]);
  }
  return Status();
}

Status Sequencer::join(uint32_t rank) {
  if (joined_[rank]) return malformed(rank_text(rank));
  joined_[rank] = true;
  last_joined_ = rank;
  ++joined_count_;
  std::vector<Name*> complete;
  for (const auto& [text, name] : names_) {
    if (is_complete(*name)) complete.push_back(name.get());
  }
  for (Name* name : complete) decide(*name);
  if (joined_count_ == ranks_) end_join();
  return Status();
}

// All hear it, so that one of them says it to people, whoever else has asked meanwhile.
void Sequencer::answer(uint32_t rank) {
  Late late{rank, {}, 0};
  for (const auto& [text, name] : names_) {
    if (name->count == 0) continue;
    if (late.names.size() == kLateNamesMax) {
      ++late.more;
      continue;
    }
    Unsubmitted one{printable(text, kNameBytesShown), {}};
    for (uint32_t other = 0; other < ranks_; ++other) {
      if (name->submitted[other] == nullptr && !joined_[other]) one.missing.push_back(other);
    }
    late.names.push_back(std::move(one));
  }
  ByteWriter writer(other_);
  writer.put(FromSequencer::Late);
  write(writer, late);
}

void Sequencer::end_join() {
  ByteWriter writer(other_);
  writer.put(FromSequencer::JoinEnded);
  writer.put(last_joined_);
  joined_.assign(ranks_, false);
  joined_count_ = 0;
}

void Sequencer::add(uint32_t rank, Name& name, NamedRequestPtr request) {
  name.submitted[rank] = std::move(request);
  ++name.count;
  if (is_complete(name)) decide(name);
}

bool Sequencer::is_complete(const Name& name) const {
  if (name.count == 0 || name.count + joined_count_ < ranks_) return false;
  return lacks_none_but_joined(name.submitted);
}

// A rank that has joined may have submitted something before.
bool Sequencer::lacks_none_but_joined(const std::vector<NamedRequestPtr>& by_rank) const {
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (by_rank[rank] == nullptr && !joined_[rank]) return false;
  }
  return true;
}

// What ranks have agreed about goes to all of them in full if any rank has said something new, or
// lacks it: then its bit is enough from here on.
void Sequencer::decide(Name& name) {
  const Status agreed = check(name);
  if (!agreed.ok()) return refuse(name, agreed);
  if (name.has_changed) {
    tell(name);
  } else {
    run_.add(name.slot);
  }
  if (name.slot == kNoSlot) {
    names_.erase(name.name);
    return;
  }
  // The bit of a rank that has joined still stands for what it had said before the others changed
  // it, so a bit is no answer until all have said the same again.
  name.has_changed = name.has_changed && name.count < ranks_;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (name.submitted[rank] != nullptr) name.last[rank] = std::move(name.submitted[rank]);
  }
  name.count = 0;
}

Status Sequencer::check(const Name& name) const {
  RDMACOLL_RETURN_IF_ERROR(compare(name.submitted));
  if (name.count == ranks_) return Status();
  const NamedKind kind = first_of(name.submitted).kind;
  if (kind == NamedKind::AllReduce || kind == NamedKind::Barrier) return Status();
  return Status(StatusCode::Unsupported,
                std::string(named_kind_name(kind)) + " \"" + printable(name.name, kNameBytesShown) +
                    "\" cannot run while a rank has joined: it has no rows of it; call join() on "
                    "all ranks first");
}

void Sequencer::tell(Name& name) {
  Agreed agreed{first_of(name.submitted), {}};
  if (has_rows(agreed.request.kind)) {
    for (const NamedRequestPtr& request : name.submitted) agreed.rows.push_back(rows_of(*request));
  }
  if (name.slot == kNoSlot && agreed.request.is_kept && slots_.size() < kSlotsMax) {
    name.slot = static_cast<uint32_t>(slots_.size());
    slots_.push_back(&name);
  }
  ByteWriter writer(other_);
  writer.put(FromSequencer::Decide);
  writer.put(name.slot);
  write(writer, agreed);
}

// All forget what they knew of the name, so that each says in full what it submits next.
void Sequencer::refuse(Name& name, const Status& why) {
  ByteWriter writer(other_);
  writer.put(FromSequencer::Refuse);
  writer.put(name.name);
  writer.put(why.code());
  writer.put(why.message());
  if (name.slot == kNoSlot) {
    names_.erase(name.name);
    return;
  }
  name.submitted.assign(ranks_, nullptr);
  name.last.assign(ranks_, nullptr);
  name.count = 0;
  name.has_changed = true;
}

Bytes Sequencer::decisions() {
  Bytes bytes;
  if (!run_.empty()) {
    ByteWriter writer(bytes);
    writer.put(FromSequencer::Run);
    std::exchange(run_, {}).write(writer);
  }
  bytes.insert(bytes.end(), other_.begin(), other_.end());
  other_.clear();
  return bytes;
}

}  // namespace rdmacoll
