// What is said of variables that nothing reads.
#include "csrc/engine/known_settings.h"

#include <gtest/gtest.h>

namespace rdmacoll::known_settings_test {
namespace {

std::vector<std::string> about(std::initializer_list<const char*> names) {
  Settings settings;
  for (const char* name : names) settings.set(name, "1");
  return about_unknown_settings(settings);
}

TEST(KnownSettings, NothingIsSaidOfThem) {
  for (const std::string_view name : known_settings()) {
    EXPECT_TRUE(about({std::string(name).c_str()}).empty()) << name;
  }
  EXPECT_TRUE(about({"RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}).empty());
}

TEST(KnownSettings, OfAnUnknownOneTheNearestIsNamed) {
  EXPECT_EQ(about({"RDMACOLL_TCP_PORT"}),
            std::vector<std::string>{
                "RDMACOLL_TCP_PORT is no setting of rdmacoll; did you mean RDMACOLL_TCP_PORTS? "
                "(docs/ENVIRONMENT.md lists all)"});
  constexpr std::pair<const char*, const char*> kTypos[] = {
      {"RDMACOLL_TRANSPROT", "RDMACOLL_TRANSPORT"},
      {"RDMACOLL_HEAP_SIZE", "RDMACOLL_HEAP_BYTES"},
      {"RDMACOLL_IFNAME", "RDMACOLL_SOCKET_IFNAME"},
      {"RDMACOLL_ALGOO", "RDMACOLL_ALGO"},
      {"RDMACOLL_log", "RDMACOLL_LOG"}};
  for (const auto& [given, meant] : kTypos) {
    const auto lines = about({given});
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find(std::string("did you mean ") + meant + "?"), std::string::npos)
        << lines[0];
  }
}

TEST(KnownSettings, WhereNoneIsNearNoneIsNamed) {
  EXPECT_EQ(about({"RDMACOLL_COFFEE"}),
            std::vector<std::string>{
                "RDMACOLL_COFFEE is no setting of rdmacoll (docs/ENVIRONMENT.md lists all)"});
}

TEST(KnownSettings, EachHasALine) {
  EXPECT_EQ(about({"RDMACOLL_TCP_PORT", "RDMACOLL_LOG", "RDMACOLL_LOGS"}).size(), 2u);
}

TEST(KnownSettings, ANameMayBeAnything) {
  const auto lines = about({"RDMACOLL_", ("RDMACOLL_\033[2J" + std::string(9999, 'x')).c_str()});
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), 300u);
    EXPECT_EQ(line.find('\033'), std::string::npos);
  }
}

}  // namespace
}  // namespace rdmacoll::known_settings_test
