// tcp: a process of the job that breaks the protocol, in each way. It alone is lost, with an error
// that names it; memory is untouched, and other peers go on.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/contract/tcp_scene.h"

namespace rdmacoll::tcp_protocol_test {
namespace {

using tcp::FrameHead;
using tcp::FrameKind;

TEST(TcpProtocol, AnHonestRogueIsHeard) {
  Scene scene;
  scene.rogue->say(scene.head(FrameKind::Put, kLines, 128), "put");
  scene.rogue->say(scene.head(FrameKind::Put, kPart, kPartBytes - 4), "last");
  scene.rogue->say(scene.head(FrameKind::Signal, kLines, 64), signal_body());
  EXPECT_TRUE(scene.pair.until([&] { return scene.pair.counter(0, 1) == 7; }));
  EXPECT_EQ(std::memcmp(scene.pair.region[0].base + 128, "put", 3), 0);
  EXPECT_EQ(std::memcmp(scene.part + kPartBytes - 4, "last", 4), 0);
  FrameHead get = scene.head(FrameKind::Get, kLines, 128);
  get.number = 1;
  scene.rogue->say(get, bytes_of(tcp::GetBody{3}));
  const FrameHead got = scene.rogue->hear();
  EXPECT_EQ(got.kind, FrameKind::Got);
  EXPECT_EQ(got.number, 1u);
  EXPECT_EQ(got.bytes, 3u);
  FrameHead update = scene.head(FrameKind::Update, kLines, scene.bytes() - 8);
  update.number = 2;
  scene.rogue->say(update, bytes_of(tcp::UpdateBody{1, 0, 0}));
  const FrameHead updated = scene.rogue->hear();
  EXPECT_EQ(updated.kind, FrameKind::Updated);
  EXPECT_EQ(updated.number, 2u);
  EXPECT_EQ(scene.pair.region[0].base[scene.bytes() - 8], std::byte{0x56});
  EXPECT_TRUE(scene.rogue->status().ok());
}

struct Way {
  const char* what;
  void (*say)(Scene&);
};

void expect_each_breaks_it(std::initializer_list<Way> ways) {
  for (const Way& way : ways) {
    SCOPED_TRACE(way.what);
    Scene scene;
    way.say(scene);
    scene.expect_rogue_alone_is_lost(kBroke);
  }
}

TEST(TcpProtocol, PutsAndSignalsBeyondARegionOrToNoneBreakIt) {
  expect_each_breaks_it({
      {"a put beyond the end",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, kLines, s.bytes() - 3), "four"); }},
      {"a put beyond the end of a part",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, kPart, kPartBytes - 3), "four"); }},
      {"a put at an offset that overflows",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, kLines, UINT64_MAX - 1), "four"); }},
      {"a put without payload",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, kLines, 0), ""); }},
      {"a put to a region that there is not",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, 77), "four"); }},
      {"a put to a region that there cannot be",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Put, kNoRegion), "four"); }},
      {"a put to another use of the id",
       [](Scene& s) {
         FrameHead head = s.head(FrameKind::Put);
         ++head.generation;
         s.rogue->say(head, "four");
       }},
      {"a signal beyond the end",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Signal, kLines, s.bytes()), signal_body()); }},
      {"a signal at an offset that overflows",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Signal, kLines, 0 - kLineBytes), signal_body());
       }},
      {"a signal between two lines",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Signal, kLines, 32), signal_body()); }},
      {"a signal to a part",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Signal, kPart), signal_body()); }},
      {"a signal to a region that there is not",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Signal, 77), signal_body()); }},
      {"a signal to another use of the id",
       [](Scene& s) {
         FrameHead head = s.head(FrameKind::Signal);
         ++head.generation;
         s.rogue->say(head, signal_body());
       }},
      {"a signal without a counter",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Signal), signal_body().substr(1)); }},
  });
}

TEST(TcpProtocol, GetsAnswersAndNoticesThatAreWrongBreakIt) {
  expect_each_breaks_it({
      {"a get beyond the end",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Get, kLines, 1),
                      bytes_of(tcp::GetBody{static_cast<uint32_t>(s.bytes())}));
       }},
      {"a get of nothing",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Get), bytes_of(tcp::GetBody{0})); }},
      {"a get from a part",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Get, kPart), bytes_of(tcp::GetBody{4})); }},
      {"a get from a region that there is not",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Get, 77), bytes_of(tcp::GetBody{4})); }},
      {"half a get", [](Scene& s) { s.rogue->say(s.head(FrameKind::Get), "ab"); }},
      {"an answer that nobody asked for",
       [](Scene& s) {
         FrameHead head = s.head(FrameKind::Got);
         head.number = 1;
         s.rogue->say(head, "four");
       }},
      {"half a mark", [](Scene& s) { s.rogue->say({.kind = FrameKind::Mark}, "half"); }},
      {"a notice of a region that there cannot be",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Closed, kMaxRegions), bytes_of(tcp::RegionNotice{1}));
       }},
      {"an offer without a note",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Offered, 3), bytes_of(tcp::OfferBody{0, 1, 64}));
       }},
      {"an offer of a region that there cannot be",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Offered, kMaxRegions), bytes_of(tcp::OfferBody{1, 1, 64}));
       }},
      {"half an offer", [](Scene& s) { s.rogue->say(s.head(FrameKind::Offered, 3), "half"); }},
      {"half a notice", [](Scene& s) { s.rogue->say(s.head(FrameKind::Withdrawn), "half"); }},
      {"an unknown kind", [](Scene& s) { s.rogue->say(s.head(static_cast<FrameKind>(99)), ""); }},
      {"a wrong tag",
       [](Scene& s) { s.rogue->say_bytes(tcp::frame(s.head(FrameKind::Put), "four", 0)); }},
      {"garbage", [](Scene& s) { s.rogue->say_bytes(std::string(5'000, 'g')); }},
  });
}

std::string add_body() { return bytes_of(tcp::UpdateBody{1, 0, 0}); }

TEST(TcpProtocol, UpdatesAndTheirAnswersThatAreWrongBreakIt) {
  expect_each_breaks_it({
      {"an update beyond the end",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update, kLines, s.bytes()), add_body()); }},
      {"an update at an offset that overflows",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update, kLines, 0 - 8ull), add_body()); }},
      {"an update between two words",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update, kLines, 4), add_body()); }},
      {"an update of a part",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update, kPart), add_body()); }},
      {"an update of a region that there is not",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update, 77), add_body()); }},
      {"an update of another use of the id",
       [](Scene& s) {
         FrameHead head = s.head(FrameKind::Update);
         ++head.generation;
         s.rogue->say(head, add_body());
       }},
      {"an update of an unknown kind",
       [](Scene& s) {
         s.rogue->say(s.head(FrameKind::Update), bytes_of(tcp::UpdateBody{1, 0, 2}));
       }},
      {"half an update",
       [](Scene& s) { s.rogue->say(s.head(FrameKind::Update), add_body().substr(1)); }},
      {"an answer to no update",
       [](Scene& s) {
         FrameHead head = s.head(FrameKind::Updated);
         head.number = 1;
         s.rogue->say(head, "8 bytes!");
       }},
  });
}

TEST(TcpProtocol, ANoticeOfAnotherUseOfAnIdChangesNothing) {
  Scene scene;
  scene.rogue->say(scene.head(FrameKind::Closed), bytes_of(tcp::RegionNotice{99}));
  scene.rogue->say(scene.head(FrameKind::Closed, 77), bytes_of(tcp::RegionNotice{1}));
  scene.rogue->say(scene.head(FrameKind::Withdrawn, 77), bytes_of(tcp::RegionNotice{1}));
  EXPECT_EQ(scene.rogue->hear().kind, FrameKind::Closed);  // what it withdrew
  EXPECT_TRUE(scene.rogue->status().ok());
  scene.expect_honest_ones_go_on();
}

// --- answers to gets -----------------------------------------------------------------------------

// The victim asks for 8 bytes of a region that the rogue says to have.
struct AskingScene : Scene {
  explicit AskingScene(int64_t streams = 1) : Scene(streams) {
    const auto key = tcp::RegionKey{{}, 5, 1, 64};
    EXPECT_TRUE(victim()
                    .open_region(rogue->peer(), encode(key), Deadline::after_ms(pair.clock, 1'000))
                    .status()
                    .ok());
    ask();
    const FrameHead asked = rogue->hear();
    EXPECT_EQ(asked.kind, FrameKind::Get);
    answer = {.kind = FrameKind::Got, .number = asked.number};
  }
  void ask() {
    EXPECT_EQ(victim().get(rogue->peer(), 0, {5, 0, 8}, {pair.region[0].base, 8, kLines}, &ticket),
              Posted::Pending);
  }
  FrameHead answer;
  Ticket ticket;
};

TEST(TcpProtocol, AnAnswerOfAnotherLengthOrNumberOrASecondOneBreaksIt) {
  for (const char* wrong : {"7 bytes", "nine byte"}) {
    AskingScene scene;
    scene.rogue->say(scene.answer, wrong);
    scene.expect_rogue_alone_is_lost(kBroke);
    EXPECT_TRUE(scene.ticket.done());  // nobody waits for it
  }
  AskingScene other;
  ++other.answer.number;
  other.rogue->say(other.answer, "8 bytes!");
  other.expect_rogue_alone_is_lost(kBroke);
  AskingScene twice;
  twice.rogue->say(twice.answer, "UUUUUUUU");  // what is there already
  EXPECT_TRUE(twice.pair.until([&] { return twice.ticket.done(); }));
  twice.rogue->say(twice.answer, "8 bytes!");
  twice.expect_rogue_alone_is_lost(kBroke);
}

// It would be done twice, and later gets before they have come.
TEST(TcpProtocol, OnlyTheFirstStreamAnswersSignalsAndSpeaksOfRegions) {
  using Say = void (*)(AskingScene&);
  for (const Say say : {
           Say([](AskingScene& s) { s.rogue->say(s.answer, "8 bytes!", 1); }),
           Say([](AskingScene& s) { s.rogue->say(s.head(FrameKind::Signal), signal_body(), 1); }),
           Say([](AskingScene& s) {
             s.rogue->say(s.head(FrameKind::Get), bytes_of(tcp::GetBody{4}), 1);
           }),
           Say([](AskingScene& s) {
             s.rogue->say({.kind = FrameKind::Mark}, bytes_of(tcp::MarkBody{}), 1);
           }),
           Say([](AskingScene& s) {
             s.rogue->say(s.head(FrameKind::Closed), bytes_of(tcp::RegionNotice{1}), 1);
           }),
           Say([](AskingScene& s) { s.rogue->say({.kind = FrameKind::Bye}, "", 1); }),
       }) {
    AskingScene scene(2);
    say(scene);
    scene.expect_rogue_alone_is_lost(kBroke);
  }
}

TEST(TcpProtocol, MoreGetsThanMayBeUnderWayFromOneThatReadsNothingBreakIt) {
  Scene scene;
  FrameHead get = scene.head(FrameKind::Get);
  const auto bytes = static_cast<uint32_t>(scene.bytes());
  for (get.number = 1; get.number <= 1'000; ++get.number) {
    scene.rogue->say(get, bytes_of(tcp::GetBody{bytes}));
    scene.victim().poll();
    if (!scene.rogue->status().ok()) break;
  }
  scene.expect_rogue_alone_is_lost(kBroke);
}

// --- marks ---------------------------------------------------------------------------------------

TEST(TcpProtocol, WhatFollowsAMarkWaitsForThePutsAndOnlyForThose) {
  Scene scene(3);
  tcp::MarkBody mark{};
  mark.puts[0] = 1;
  mark.puts[1] = 2;
  scene.rogue->say({.kind = FrameKind::Mark}, bytes_of(mark));
  scene.rogue->say(scene.head(FrameKind::Signal), signal_body());
  std::memset(scene.pair.region[0].base, 0, kLineBytes);
  const auto comes = [&] { return scene.pair.counter(0) == 7; };
  EXPECT_FALSE(scene.pair.until(comes, 50));
  scene.rogue->say(scene.head(FrameKind::Put, kLines, 128), "one", 1);
  EXPECT_FALSE(scene.pair.until(comes, 50));
  scene.rogue->say(scene.head(FrameKind::Put, kLines, 131), "two", 2);
  EXPECT_FALSE(scene.pair.until(comes, 50));
  scene.rogue->say(scene.head(FrameKind::Put, kLines, 134), "three", 2);
  EXPECT_TRUE(scene.pair.until(comes));
  EXPECT_EQ(std::memcmp(scene.pair.region[0].base + 128, "onetwothree", 11), 0);
  EXPECT_TRUE(scene.rogue->status().ok());
}

TEST(TcpProtocol, AMarkOfPutsThatNeverComeHoldsUpItsSenderAlone) {
  Scene scene(2);
  tcp::MarkBody mark{};
  mark.puts[0] = 1;
  scene.rogue->say({.kind = FrameKind::Mark}, bytes_of(mark));
  scene.rogue->say(scene.head(FrameKind::Signal), signal_body());
  EXPECT_FALSE(scene.pair.until([&] { return !scene.rogue->status().ok(); }, 50));
  EXPECT_TRUE(scene.is_untouched());
  scene.expect_honest_ones_go_on();
  scene.rogue->hang_up();
  EXPECT_TRUE(scene.pair.until([&] { return !scene.rogue->status().ok(); }, 5'000));
}

// --- a region that is no longer open -------------------------------------------------------------

// It would be read after it is gone.
TEST(TcpProtocol, WhoHasClosedARegionCannotReachItAnyMore) {
  Scene scene;
  const MadeRegion region = make_region(scene.victim(), 9, 4096).take();
  ASSERT_TRUE(scene.victim().offer_region(scene.rogue->peer(), 9, kNoNote).ok());
  // The honest peer takes nothing, so that the region stays for now.
  Ticket ticket;
  while (scene.pair.put(0, scene.bytes(), 0, 0, &ticket) != Posted::Full) scene.victim().poll();
  FrameHead about = scene.head(FrameKind::Closed, 9);
  const auto key = tcp::parse_region_key(region.key).take();
  about.generation = static_cast<uint16_t>(key.generation);
  scene.rogue->say(about, bytes_of(tcp::RegionNotice{key.generation}));
  scene.victim().release_region(9, Release::Keep);
  const auto poll = [&] { scene.victim().poll(); };
  EXPECT_FALSE(tcp_until(poll, [&] { return scene.victim().is_reusable(9); }, 50));
  about.kind = FrameKind::Get;
  scene.rogue->say(about, bytes_of(tcp::GetBody{4096}));
  EXPECT_TRUE(tcp_until(poll, [&] { return !scene.rogue->status().ok(); }, 5'000));
  scene.expect_rogue_alone_is_lost(kBroke);
  EXPECT_TRUE(scene.pair.until([&] { return scene.victim().is_reusable(9); }));
}

}  // namespace
}  // namespace rdmacoll::tcp_protocol_test
