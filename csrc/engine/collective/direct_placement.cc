// DirectPlacement. Floor: engine/collective. Thread: the driver.
#include "csrc/engine/collective/direct_placement.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

namespace rdmacoll {
namespace {

// Several times the way of a line over a network, and little to what is worth a grant.
constexpr int64_t kPatienceNs = 100'000;

}  // namespace

DirectPlacement::DirectPlacement(const PeerLinks& links, const Heap* heap, const Clock& clock,
                                 uint64_t least_bytes)
    : links_(links), heap_(heap), clock_(clock), least_bytes_(least_bytes) {}

void DirectPlacement::begin(const Operation& operation, uint64_t bytes) {
  operation_ = &operation;
  unsent_ = 0;
  if (!links_.some_are_remote() || bytes < least_bytes_) return;
  const size_t met = links_.count() + 1;
  if (given_.size() < met) {
    given_.resize(met);
    expected_.resize(met);
  }
  for (const Step& step : operation.plan->steps) {
    if (!is_placed(step)) continue;
    if (step.kind == StepKind::Wait) {
      give(step);
    } else {
      expect(step);
    }
  }
  for (Given& given : given_) {
    if (!is_due(given)) continue;
    fill_in(given, *link(given.peer).transport);
    ++unsent_;
  }
  send_grants();
  wait_until_ns_ = clock_.now_ns() + kPatienceNs;
}

// Both ends of a direction come to the same sum of these.
uint64_t DirectPlacement::bytes_of(BlockRange blocks) const {
  if (operation_->contiguous) return operation_->bytes * blocks.count / operation_->plan->blocks;
  return operation_->block_bytes[blocks.first];
}

bool DirectPlacement::is_placed(const Step& step) const {
  return step.placed && !link(step.peer).is_mapped() && bytes_of(step.blocks) != 0;
}

bool DirectPlacement::is_due(const Direction& direction) const {
  return direction.sequence == operation_->sequence && direction.bytes >= least_bytes_;
}

void DirectPlacement::count(const Step& step, Direction& direction) const {
  direction.sequence = operation_->sequence;
  direction.bytes += bytes_of(step.blocks);
  direction.signature += operation_->message_signature(step.blocks);
}

void DirectPlacement::expect(const Step& step) {
  Expected& expected = *of(links_.at(step.peer), expected_);
  if (expected.sequence != operation_->sequence) expected = Expected{};
  count(step, expected);
}

void DirectPlacement::give(const Step& step) {
  Given& given = *of(links_.at(step.peer), given_);
  if (given.sequence != operation_->sequence) given = Given{};
  given.peer = step.peer;
  count(step, given);
  if (operation_->contiguous) {
    given.begin = given.block_at = operation_->output;
    given.end = operation_->output + operation_->bytes;
  } else {
    add_block(given, step.blocks.first, bytes_of(step.blocks));
  }
}

void DirectPlacement::add_block(Given& given, uint16_t block, uint64_t bytes) {
  const std::byte* at = operation_->outputs[block];
  Grant& grant = given.grant;
  if (given.block_at == nullptr) {
    given.begin = given.block_at = at;
    given.end = at + bytes;
    grant.block = block;
    return;
  }
  const int64_t blocks = int64_t{block} - grant.block;
  const int64_t distance_bytes = at - given.block_at;
  if (grant.stride_bytes == 0 && blocks != 0) grant.stride_bytes = distance_bytes / blocks;
  given.is_even &= distance_bytes == blocks * grant.stride_bytes;
  given.begin = std::min(given.begin, at);
  given.end = std::max(given.end, at + bytes);
}

void DirectPlacement::fill_in(Given& given, const Transport& transport) const {
  if (heap_ == nullptr || !given.is_even) return;
  const auto bytes = static_cast<uint64_t>(given.end - given.begin);
  const std::optional<Heap::Part> part = heap_->part_of(given.begin, bytes);
  if (!part) return;
  const std::string_view key = heap_->key_of(part->region, transport);
  if (key.size() != given.grant.key.size()) return;
  std::copy(key.begin(), key.end(), given.grant.key.begin());
  given.grant.offset = part->offset + static_cast<uint64_t>(given.block_at - given.begin);
}

void DirectPlacement::send_grants() {
  for (size_t i = 0; unsent_ > 0 && i < given_.size(); ++i) {
    Given& given = given_[i];
    if (!is_due(given) || given.sent) continue;
    const Link& link = this->link(given.peer);
    Header header;
    header.signature = given.signature;
    header.inline_bytes = sizeof(Grant);
    std::memcpy(header.inline_data, &given.grant, sizeof(Grant));
    const RemoteSlice line{link.slab.id, links_.layout().grant(link.room), kLineBytes};
    if (link.transport->signal(link.peer, kOrderedChannel, line, given.sequence, header) ==
        Posted::Full) {
      return;
    }
    given.sent = true;
    --unsent_;
  }
}

bool DirectPlacement::is_undecided(uint32_t peer) {
  Expected* expected = of(links_.at(peer), expected_);
  if (expected == nullptr || !is_due(*expected)) return false;
  if (expected->answer == Answer::None) read_answer(link(peer), *expected);
  return expected->answer == Answer::None && clock_.now_ns() < wait_until_ns_;
}

void DirectPlacement::read_answer(const Link& link, Expected& expected) {
  const auto& line =
      *reinterpret_cast<const Line*>(link.own_slab.base + links_.layout().grant(link.own_room));
  if (line.counter.load(std::memory_order_acquire) != expected.sequence) return;
  std::memcpy(&expected.grant, line.inline_data, sizeof(Grant));
  expected.answer = Answer::Slots;
  if (line.signature != expected.signature || !expected.grant.leads_somewhere()) return;
  const std::string_view key(expected.grant.key.data(), expected.grant.key.size());
  Result<Region> region = link.transport->open_region(link.peer, key, Deadline{0});
  if (!region.ok()) return;
  expected.answer = Answer::Granted;
  expected.region = region.value();
}

std::optional<RemoteSlice> DirectPlacement::place(uint32_t peer, BlockRange blocks,
                                                  const Piece& piece) const {
  const Expected* expected = of(links_.at(peer), expected_);
  const bool granted = expected != nullptr && expected->sequence == operation_->sequence &&
                       expected->answer == Answer::Granted;
  if (!granted || piece.bytes <= kInlineBytes) return std::nullopt;
  const Grant& grant = expected->grant;
  // Unsigned, because the peer may have written anything: sums wrap, and end where it holds
  // nothing.
  const uint64_t from_block =
      operation_->contiguous
          ? 0
          : (uint64_t{blocks.first} - grant.block) * static_cast<uint64_t>(grant.stride_bytes);
  const uint64_t offset = grant.offset + from_block + piece.offset;
  if (!expected->region.holds(offset, piece.bytes)) return std::nullopt;
  return RemoteSlice{expected->region.id, offset, piece.bytes};
}

bool DirectPlacement::is_granted_to(uint32_t peer) const {
  const Given* given = of(links_.at(peer), given_);
  return operation_ != nullptr && given != nullptr && given->sequence == operation_->sequence &&
         given->sent && given->grant.leads_somewhere();
}

}  // namespace rdmacoll
