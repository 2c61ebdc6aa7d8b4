// What a peer says while a group is shrunk, as it was read from its memory: what is taken for a
// statement is of that rank and group, and says the same when it is said again.
#include <algorithm>
#include <cstring>

#include "csrc/engine/failure/statement.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kRank = 3;
constexpr uint32_t kRanks = 70;

struct alignas(kLineBytes) Area {
  std::byte bytes[kStatementBytes] = {};
};

std::string said(ShrinkStage stage, const std::string& record) {
  Area area;
  Statement statement{kRank, stage, RankSet(kRanks), record};
  statement.excluded[1] = statement.excluded[69] = true;
  RDMACOLL_CHECK(statement.publish(area.bytes).ok());
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
  const auto statement = Statement::read(area.bytes, kRank, kRanks);
  if (!statement) return;
  RDMACOLL_CHECK(statement->rank == kRank && statement->excluded.size() == kRanks);
  RDMACOLL_CHECK(statement->record.size() <= kStatementBytes);
  Area again;
  RDMACOLL_CHECK(statement->publish(again.bytes).ok());
  const auto same = Statement::read(again.bytes, kRank, kRanks);
  RDMACOLL_CHECK(same && same->stage == statement->stage && same->record == statement->record &&
                 same->excluded == statement->excluded);
}

}  // namespace rdmacoll::fuzz
