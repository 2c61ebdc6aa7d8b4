// What a peer says while a group is shrunk, as it was read from its memory: what is taken for a
// state is of that rank and group, and says the same when it is said again.
#include <algorithm>
#include <cstring>

#include "csrc/engine/failure/shrink_state.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kRank = 3;
constexpr uint32_t kRanks = 70;

struct alignas(kLineBytes) Area {
  std::byte bytes[shrink_state_bytes(kRanks)] = {};
};

std::string said(ShrinkStage stage, const std::string& record) {
  Area area;
  ShrinkState state{kRank, stage, RankSet(kRanks), record};
  state.excluded[1] = state.excluded[69] = true;
  RDMACOLL_CHECK(state.publish(area.bytes).ok());
  return bytes_of(area);
}

}  // namespace

std::vector<std::string> seeds() {
  return {said(ShrinkStage::Agreeing, ""), said(ShrinkStage::Ready, "a record"),
          said(ShrinkStage::Decided, std::string(3000, 'x')), bytes_of(Area())};
}

void run(const std::string& bytes) {
  Area area;
  std::memcpy(area.bytes, bytes.data(), std::min(bytes.size(), sizeof area.bytes));
  const auto state = ShrinkState::read(area.bytes, kRank, kRanks);
  if (!state) return;
  RDMACOLL_CHECK(state->rank == kRank && state->excluded.size() == kRanks);
  RDMACOLL_CHECK(state->record.size() <= shrink_state_bytes(kRanks));
  Area again;
  RDMACOLL_CHECK(state->publish(again.bytes).ok());
  const auto same = ShrinkState::read(again.bytes, kRank, kRanks);
  RDMACOLL_CHECK(same && same->stage == state->stage && same->record == state->record &&
                 same->excluded == state->excluded);
}

}  // namespace rdmacoll::fuzz
