// The card of shared memory: what parses is what was encoded, byte by byte.
#include "csrc/transport/shm/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  const Card card{{1, 2, 3}, 17, 4026531840, "host-17", "rdmacoll-0123456789abcdef"};
  Card without_host = card;
  without_host.host.clear();
  return {encode(card), encode(without_host)};
}

void run(const std::string& bytes) {
  Result<Card> card = parse_card(bytes);
  if (!card.ok()) return check_error(card.status());
  RDMACOLL_CHECK(!card.value().socket.empty());
  RDMACOLL_CHECK(encode(card.value()) == bytes);
}

}  // namespace rdmacoll::fuzz
