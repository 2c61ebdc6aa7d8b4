// The keys of regions over tcp, whole ones, those of parts and of what is lent: what parses is what
// was encoded, byte by byte.
#include "csrc/base/limits.h"
#include "csrc/transport/tcp/connection/address.h"
#include "csrc/transport/transport.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

namespace {

std::string text_of(const std::array<char, kShortKeyBytes>& key) {
  return std::string(key.data(), key.size());
}

}  // namespace

std::vector<std::string> seeds() {
  return {encode(tcp::RegionKey{{1, 2, 3}, 7, 5, 1 << 20}), encode(tcp::PartKey{7, 1 << 20}),
          text_of(encode(tcp::PlacementKey{63, 5, uint64_t{1} << 40}))};
}

void run(const std::string& bytes) {
  const auto is_same = [&](auto key) {
    if (!key.ok()) return check_error(key.status());
    RDMACOLL_CHECK(encode(key.value()) == bytes && key.value().region < kMaxRegions);
  };
  is_same(tcp::parse_region_key(bytes));
  is_same(tcp::parse_part_key(bytes));
  if (const auto lent = tcp::parse_placement_key(bytes)) {
    RDMACOLL_CHECK(text_of(encode(*lent)) == bytes && lent->slot < tcp::kPlacements);
    RDMACOLL_CHECK(!tcp::parse_part_key(bytes).ok());
  }
}

}  // namespace rdmacoll::fuzz
