// ShrinkState as words: a sum over all that follow it, a fixed part, the set, the record.
// Floor: engine/failure.
#include "csrc/engine/failure/shrink_state.h"

#include <atomic>
#include <cstring>
#include <span>

#include "csrc/engine/failure/word_sum.h"

namespace rdmacoll {
namespace {

using Word = uint64_t;
constexpr size_t kFixedWords = 4;  // sum; words in all, rank; stage, world; bytes of the record

size_t words_for(size_t count, size_t per_word) { return (count + per_word - 1) / per_word; }
size_t set_words(uint32_t world) { return words_for(world, 64); }
size_t words_of_area(uint32_t world) { return shrink_state_bytes(world) / sizeof(Word); }
Word pair_of(uint64_t low, uint64_t high) { return low | high << 32; }

}  // namespace

Status ShrinkState::publish(std::byte* area) const {
  const auto world = static_cast<uint32_t>(excluded.size());
  const size_t count = kFixedWords + set_words(world) + words_for(record.size(), sizeof(Word));
  if (count > words_of_area(world)) {
    return Status(StatusCode::InvalidArgument,
                  "what this rank says of itself takes " + std::to_string(count * sizeof(Word)) +
                      " bytes, there is room for " + std::to_string(shrink_state_bytes(world)));
  }
  std::vector<Word> words(count);
  words[1] = pair_of(count, rank);
  words[2] = pair_of(static_cast<uint32_t>(stage), world);
  words[3] = record.size();
  for (uint32_t r = 0; r < world; ++r) {
    if (excluded[r]) words[kFixedWords + r / 64] |= Word{1} << r % 64;
  }
  std::memcpy(words.data() + kFixedWords + set_words(world), record.data(), record.size());
  words[0] = sum_of(std::span(words).subspan(1));
  auto* atomic = reinterpret_cast<std::atomic<Word>*>(area);  // peers read while it changes
  for (size_t i = 0; i < count; ++i) atomic[i].store(words[i], std::memory_order_release);
  return Status();
}

std::optional<ShrinkState> ShrinkState::read(const std::byte* copy, uint32_t rank, uint32_t world) {
  std::vector<Word> words(words_of_area(world));
  std::memcpy(words.data(), copy, shrink_state_bytes(world));
  const size_t count = words[1] & UINT32_MAX;
  const auto stage = static_cast<uint32_t>(words[2]);
  const uint64_t record_bytes = words[3];
  if (count < kFixedWords || count > words.size() || words[1] != pair_of(count, rank) ||
      words[2] != pair_of(stage, world) || record_bytes > shrink_state_bytes(world) ||
      count != kFixedWords + set_words(world) + words_for(record_bytes, sizeof(Word)) ||
      stage < static_cast<uint32_t>(ShrinkStage::Agreeing) ||
      stage > static_cast<uint32_t>(ShrinkStage::Declined) ||
      words[0] != sum_of(std::span(words).subspan(1, count - 1))) {
    return std::nullopt;
  }
  ShrinkState state{.rank = rank, .stage = static_cast<ShrinkStage>(stage)};
  for (uint32_t r = 0; r < world; ++r) {
    state.excluded.push_back((words[kFixedWords + r / 64] >> r % 64 & 1) != 0);
  }
  state.record.assign(reinterpret_cast<const char*>(words.data() + kFixedWords + set_words(world)),
                      record_bytes);
  return state;
}

}  // namespace rdmacoll
