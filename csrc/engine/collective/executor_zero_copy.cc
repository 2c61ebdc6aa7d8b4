// Executor: zero-copy messages (plan.h, "Zero copy"), and when their operation is over.
// Floor: engine/collective. Thread: the driver.
#include <algorithm>

#include "csrc/engine/collective/executor.h"

namespace rdmacoll {

void Executor::choose_zero_copy(uint64_t operation_bytes) {
  zero_copy_.local = heap_ != nullptr && operation_bytes >= heap_->zero_copy_local_bytes() &&
                     links_.all_map_mine();
  zero_copy_.remote = (heap_ != nullptr || links_.some_read_any_memory()) &&
                      operation_bytes >= zero_copy_.remote_bytes;
}

// Whether peers may read results where this rank writes them.
bool Executor::results_in_heap() const {
  if (!zero_copy_.local) return false;
  if (operation_->contiguous) return heap_->holds(operation_->output, 1);
  const std::vector<std::byte*>& outputs = operation_->outputs;
  const auto any = std::find_if(outputs.begin(), outputs.end(),
                                [](const std::byte* output) { return output != nullptr; });
  return any != outputs.end() && heap_->holds(*any, 1);
}

// Whether the message that this destination is for is read out of its source, so that the
// destination is not to be written. signal_data() comes to the same answer.
bool Executor::is_zero_copy(const Step& step, const Operand& destination, uint64_t tile) const {
  if (!has_zero_copy() || !destination.zero_copy) return false;
  const uint32_t peer = destination.buffer == Buffer::Stage ? stage_reader() : destination.rank;
  return zero_copy_source(*source_of(*operation_->plan, step), peer, tile).has_value();
}

std::optional<ZeroCopySource> Executor::zero_copy_source(const Operand& operand, uint32_t peer,
                                                         uint64_t tile) const {
  const bool is_local = link(peer).is_mapped();
  if (is_local ? !zero_copy_.local : !zero_copy_.remote) return std::nullopt;
  const Piece piece = tiling_->piece(operand.blocks, tile);
  if (piece.bytes <= kInlineBytes) return std::nullopt;
  const std::byte* data = operand.buffer == Buffer::Input ? in_input(operand.blocks, piece)
                                                          : in_output(operand.blocks, piece);
  if (!is_local && link(peer).transport->info().any_memory) {
    return ZeroCopySource{.slice = {const_cast<std::byte*>(data), piece.bytes, kNoRegion}};
  }
  if (heap_ == nullptr || !heap_->holds(data, piece.bytes)) return std::nullopt;
  ZeroCopySource source{.offset = static_cast<uint64_t>(data - heap_->base())};
  if (is_local) return source;
  const std::optional<Heap::Part> part = heap_->part_of(data, piece.bytes);
  if (!part) return std::nullopt;
  source.slice = {const_cast<std::byte*>(data), piece.bytes, part->region};  // put() only reads it
  return source;
}

void Executor::keep_unsettled(uint8_t channel, uint32_t peer) {
  const Unsettled added{channel, peer};
  if (std::find(unsettled_.begin(), unsettled_.end(), added) == unsettled_.end()) {
    unsettled_.push_back(added);
  }
}

bool Executor::is_unsettled_with(uint32_t peer) const {
  return std::any_of(unsettled_.begin(), unsettled_.end(),
                     [&](const Unsettled& left) { return left.peer == peer; });
}

bool Executor::settle() {
  return std::erase_if(unsettled_, [&](const Unsettled& left) {
           return port(left.channel, left.peer).settle();
         }) > 0;
}

bool Executor::is_sending_to(uint32_t peer) const {
  for (uint8_t channel = 0; links_.at(peer) != nullptr && channel < kSlotChannels; ++channel) {
    if (!port(channel, peer).puts_done()) return true;
  }
  return false;
}

void Executor::drop_zero_copy(uint32_t peer) {
  if (links_.at(peer) == nullptr || !link(peer).is_mapped()) return;
  std::erase_if(unsettled_, [&](const Unsettled& left) { return left.peer == peer; });
}

void Executor::stop() {
  lanes_left_ = 0;
  unsettled_.clear();
}

}  // namespace rdmacoll
