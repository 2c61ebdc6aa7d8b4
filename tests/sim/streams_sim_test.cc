// Hundreds of messages one way while some wait the other way: what a line says of credit is old by
// then. Random scripts have too few messages for that.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>

#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::streams_sim_test {
namespace {

constexpr uint64_t kSeedsPerStream = 20;  // it takes as long as so many scripts
constexpr int64_t kStallBoundMs = 10'000;
constexpr int32_t kStreamTag = 1;
constexpr int32_t kWaitingTag = 2;
constexpr size_t kFits = 8;  // numbers into the slots of short messages, as small as they are here
constexpr int kTurns = 8;
constexpr size_t kPassFrom = 200, kPassTo = 300;  // messages while one waits
constexpr size_t kBehind = 4;                     // sent and not received, as they pass
constexpr size_t kBurst = 16;                     // the same at the end: more than there are slots
constexpr uint64_t kMostRounds = 3'000'000;       // of a world: ten times as many as it takes

using Numbers = std::vector<int32_t>;

// Messages from one rank to another, received in the order in which they are sent. Most of them lie
// beside their envelope.
class Flow {
 public:
  Flow(std::mt19937_64& random, Communicator& from, Communicator& to, int32_t tag)
      : random_(random), from_(from), to_(to), tag_(tag) {}

  size_t sent() const { return sent_.size(); }
  size_t received() const { return received_.size(); }
  size_t behind() const { return sent() - received(); }
  size_t in_flight() const {
    const auto done = [](const WorkPtr& work) { return work->done(); };
    return sent() - static_cast<size_t>(std::count_if(receives_.begin(), receives_.end(), done));
  }

  void send(std::vector<WorkPtr>& works) {
    const size_t count = random_() % 64 == 0 ? random_() % 400 : kFits - random_() % 2;
    const Numbers& message = sent_.emplace_back(count, static_cast<int32_t>(sent()));
    auto work = from_.send({message.data(), message.size() * sizeof(int32_t)}, to_.rank(), tag_);
    ASSERT_TRUE(work.ok()) << work.status().message();
    works.push_back(work.take());
  }
  void receive(std::vector<WorkPtr>& works) {
    Numbers& message = received_.emplace_back(sent_[received()].size(), -1);
    auto work = to_.recv({message.data(), message.size() * sizeof(int32_t)}, from_.rank(), tag_);
    ASSERT_TRUE(work.ok()) << work.status().message();
    receives_.push_back(work.take());
    works.push_back(receives_.back());
  }
  void check() const {
    ASSERT_EQ(received(), sent());
    for (size_t i = 0; i < sent(); ++i) ASSERT_EQ(received_[i], sent_[i]) << "message " << i;
  }

 private:
  std::mt19937_64& random_;
  Communicator& from_;
  Communicator& to_;
  int32_t tag_;
  std::deque<Numbers> sent_, received_;
  std::vector<WorkPtr> receives_;
};

// A stream, and messages the other way. A turn: one of these is sent and waits while hundreds of
// the stream pass; then more of the stream are sent than there are slots, in the midst of which it
// is received.
class Pair {
 public:
  Pair(std::mt19937_64& random, Communicator& from, Communicator& to)
      : random_(random),
        stream_(random, from, to, kStreamTag),
        waiting_(random, to, from, kWaitingTag) {}

  bool over() const { return turns_ == kTurns; }
  size_t messages() const { return stream_.sent() + waiting_.sent(); }

  void go_on(std::vector<WorkPtr>& works) {
    if (over()) return;
    if (left_ == 0) {
      waiting_.send(works);
      left_ = kPassFrom + random_() % (kPassTo - kPassFrom) + kBurst;
      taken_at_ = random_() % kBurst;
    }
    stream_.send(works);
    --left_;
    if (left_ == taken_at_) waiting_.receive(works);
    const size_t behind = left_ == 0 ? 0 : left_ < kBurst ? kBurst : random_() % kBehind;
    while (stream_.behind() > behind) stream_.receive(works);
    if (left_ == 0) ++turns_;
  }
  bool is_to_be_waited_for() const { return left_ >= kBurst && stream_.in_flight() > kBehind; }
  void check() const {
    stream_.check();
    waiting_.check();
  }

 private:
  std::mt19937_64& random_;
  Flow stream_, waiting_;
  size_t left_ = 0;  // messages of this turn
  size_t taken_at_ = 0;
  int turns_ = 0;
};

// From each rank to the next; how many messages.
uint64_t run_streams(uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::unique_ptr<SimWorld> world = patient_world(seed, random, kStallBoundMs);
  std::deque<Pair> pairs;
  for (int r = 0; r < world->size(); ++r) {
    pairs.emplace_back(random, world->rank(r), world->rank((r + 1) % world->size()));
  }
  std::vector<WorkPtr> works;
  const auto over = [](const Pair& pair) { return pair.over(); };
  while (!std::all_of(pairs.begin(), pairs.end(), over) && world->rounds() < kMostRounds) {
    for (Pair& pair : pairs) {
      pair.go_on(works);
      for (uint64_t steps = random() % 40; steps > 0; --steps) world->step();
      while (pair.is_to_be_waited_for() && world->rounds() < kMostRounds) world->step();
    }
  }
  EXPECT_TRUE(world->run(works)) << "stuck";
  for (const WorkPtr& work : works) EXPECT_TRUE(work->status().ok()) << work->status().message();
  uint64_t messages = 0;
  for (const Pair& pair : pairs) {
    pair.check();
    messages += pair.messages();
  }
  return messages;
}

TEST(Streams, MessagesWaitWhileHundredsPassTheOtherWay) {
  uint64_t ran = 0, messages = 0;
  for_each_seed(1, [&](uint64_t seed) {
    if (seed % kSeedsPerStream != 1 && !replays_one_seed()) return;
    messages += run_streams(seed);
    ++ran;
  });
  std::printf("streams: %" PRIu64 " worlds, %" PRIu64 " messages\n", ran, messages);
}

}  // namespace
}  // namespace rdmacoll::streams_sim_test
