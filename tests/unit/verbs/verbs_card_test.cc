// The card of the verbs transport: what comes back is what was said, and nothing else is a card.
#include <gtest/gtest.h>

#include "csrc/transport/verbs/connection/address.h"

namespace rdmacoll::verbs {
namespace {

constexpr size_t kHostAt = 56;
constexpr size_t kMtuAt = 54;

VerbsCard card() {
  VerbsCard card;
  card.process = {1, 2, 3};
  card.pid = 17;
  card.host = "host-17";
  card.port = {{}, 5, IBV_MTU_4096, false};
  card.door = 42;
  card.door_key = 0x11111111;
  return card;
}

TEST(VerbsCard, ComesBack) {
  auto parsed = parse_verbs_card(encode(card()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().who(), "pid 17 on host host-17");
  EXPECT_EQ(parsed.value().door, 42u);
  EXPECT_EQ(parsed.value().port.mtu, IBV_MTU_4096);
}

TEST(VerbsCard, IsTakenWholeOrNotAtAll) {
  const std::string bytes = encode(card());
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_verbs_card(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(parse_verbs_card(bytes + '\0').ok());
}

TEST(VerbsCard, AnMtuIsOneThatExists) {
  std::string bytes = encode(card());
  bytes[kMtuAt] = 6;
  EXPECT_FALSE(parse_verbs_card(bytes).ok());
}

// Found by fuzzing: a name that fills its field was taken, and said again one letter shorter.
TEST(VerbsCard, AHostNameEndsWithAZero) {
  std::string bytes = encode(card());
  bytes.replace(kHostAt, std::string::npos, std::string(bytes.size() - kHostAt, 'h'));
  EXPECT_FALSE(parse_verbs_card(bytes).ok());
}

}  // namespace
}  // namespace rdmacoll::verbs
