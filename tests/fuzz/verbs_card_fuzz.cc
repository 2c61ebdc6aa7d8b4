// The card of the verbs transport: what parses is encoded to what parses to the same.
#include "csrc/transport/verbs/connection/address.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  verbs::VerbsCard card;
  card.process = {1, 2, 3};
  card.pid = 17;
  card.host = "host-17";
  card.port = {{}, 5, IBV_MTU_4096, false};
  card.door = 42;
  card.door_key = 0x11111111;
  verbs::VerbsCard ethernet = card;
  ethernet.port.is_ethernet = true;
  ethernet.host = std::string(100, 'h');
  return {encode(card), encode(ethernet)};
}

void run(const std::string& bytes) {
  Result<verbs::VerbsCard> card = verbs::parse_verbs_card(bytes);
  if (!card.ok()) return check_error(card.status());
  const std::string again = encode(card.value());
  Result<verbs::VerbsCard> same = verbs::parse_verbs_card(again);
  RDMACOLL_CHECK(same.ok() && encode(same.value()) == again);
  RDMACOLL_CHECK(same.value().host == card.value().host);
  RDMACOLL_CHECK(same.value().door == card.value().door);
}

}  // namespace rdmacoll::fuzz
