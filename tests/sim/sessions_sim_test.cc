// Sessions that come and go: ranks that use each other's memory now and then, on networks that
// bring what they say late. A session that nobody uses is closed on both sides and begun anew when
// it is looked for; nothing that was asked is lost; and memory is given to nobody else while
// somebody has it open.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "csrc/engine/session/read_write.h"
#include "csrc/remote/opened.h"
#include "csrc/remote/remote_memory.h"
#include "tests/sim/seeds.h"
#include "tests/sim/sim_world.h"

namespace rdmacoll::sessions_sim_test {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kUses = 12;               // of each rank, of each other
constexpr uint64_t kMostRounds = 4'000'000;  // of a world: ten times as many as it takes
constexpr uint64_t kBytes = 64;

// A rank: it offers its memory to who asks, and reads theirs.
class Host final : public Responder {
 public:
  Host(SimWorld& world, int rank) : world_(world), rank_(rank) {
    const EngineContext& context = world.rank(rank).context();
    memory_ = RemoteMemory::make(
                  {context.transports, context.sessions, std::make_shared<RemoteMemories>(), {}},
                  kBytes, Others::OnlyRead)
                  .value();
    region_ = memory_->local().region;
    std::fill_n(memory_->data(), kBytes, static_cast<std::byte>(rank));
    own_ = context.transports.create_region(kBytes).value();
    sessions().answer_by(this);
  }
  ~Host() override { sessions().answer_by(nullptr); }

  Sessions& sessions() const { return world_.rank(rank_).context().sessions; }
  const Region& own() const { return own_; }
  uint64_t ended() const { return ended_; }

  // The memory of the session's other rank, opened once. nullptr: it does not open.
  const Region* open(const SessionPtr& session, const std::string& key) {
    auto& memory = open_[session.get()];
    if (memory == nullptr) {
      const Link& link = session->link();
      auto region = link.transport->open_region(link.peer, key, Deadline{0});
      if (!region.ok()) return nullptr;
      memory = std::make_unique<OpenMemory>(link, region.value());
    }
    return &memory->region;
  }
  bool has_open() const {
    return std::ranges::any_of(open_, [](const auto& one) { return one.second != nullptr; });
  }
  void free_memory() { memory_.reset(); }
  bool is_reusable() const { return world_.network().transport(rank_).is_reusable(region_); }

  Result<std::string> answer(const SessionPtr& session, const std::string&) override {
    if (memory_ == nullptr) return std::string();
    return memory_->offer(session);
  }
  void note_end(const SessionPtr& session) override {
    ++ended_;
    if (memory_ != nullptr) memory_->forget(session);
    open_.erase(session.get());
  }

 private:
  SimWorld& world_;
  const int rank_;
  RemoteMemoryPtr memory_;
  RegionId region_ = kNoRegion;
  Region own_;
  std::map<const Session*, std::unique_ptr<OpenMemory>> open_;
  uint64_t ended_ = 0;
};

// What one rank does with another, over and over: it looks for the session, asks for the other's
// memory, reads it, and lets go of the session.
class User {
 public:
  User(SimWorld& world, Host& host, int rank, int other)
      : world_(world), host_(host), rank_(rank), other_(other) {}

  bool is_done() const { return is_lost_ || (uses_ == kUses && session_ == nullptr); }
  // That rank is dead.
  void lose() { is_lost_ = true; }
  void go_on() {
    if (is_done()) return;
    if (session_ == nullptr) return look();
    if (request_ != nullptr) return hear();
    if (read_ == nullptr || !read_->done()) return;
    if (!has_failed(read_->status())) {
      const std::byte* const got = host_.own().base;
      EXPECT_EQ(got[other_], static_cast<std::byte>(other_))
          << "of other memory than was asked for";
    }
    read_ = nullptr;
    session_ = nullptr;
    ++uses_;
  }

 private:
  bool has_failed(const Status& status) {
    if (status.ok()) return false;
    EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
    session_ = nullptr;
    return is_lost_ = true;
  }
  void look() {
    if (!is_looking_ && world_.draw(40) != 0) return;
    is_looking_ = true;
    auto session = host_.sessions().look(*world_.rank(rank_).address_of(other_),
                                         "rank " + std::to_string(other_), Deadline{INT64_MAX});
    if (session.status().code() == StatusCode::Timeout) return;
    is_looking_ = false;
    if (has_failed(session.status())) return;
    session_ = session.take();
    ask();
  }
  void ask() {
    auto request = std::make_shared<Request>();
    request->work = std::make_shared<Work>();
    request->text = "its memory";
    request->deadline_ns = INT64_MAX;
    if (!has_failed(host_.sessions().submit(*session_, request))) request_ = request;
  }
  void hear() {
    if (!request_->work->done()) return;
    const RequestPtr heard = std::exchange(request_, nullptr);
    if (has_failed(heard->work->status())) return;
    if (heard->reply.empty()) {  // it is freed
      session_ = nullptr;
      ++uses_;
      return;
    }
    const Region* const theirs = host_.open(session_, heard->reply);
    if (theirs == nullptr) return ask();
    const auto at = static_cast<uint64_t>(other_);
    auto read = std::make_unique<Read>(LocalSlice{host_.own().base + at, 1, host_.own().id},
                                       *theirs, world_.draw(kBytes));
    read_ = read->work = std::make_shared<Work>();
    read->deadline_ns = INT64_MAX;
    if (has_failed(host_.sessions().submit(*session_, std::move(read)))) read_ = nullptr;
  }

  SimWorld& world_;
  Host& host_;
  const int rank_;
  const int other_;
  SessionPtr session_;
  RequestPtr request_;
  WorkPtr read_;
  uint64_t uses_ = 0;
  bool is_looking_ = false;
  bool is_lost_ = false;
};

// Within a minute, in which nobody does anything.
bool comes_in_time(SimWorld& world, const std::function<bool()>& holds) {
  for (int second = 0; second < 60; ++second) {
    for (int step = 0; step < 200; ++step) world.step();
    if (holds()) return true;
    world.network().advance(1'000'000'000);
  }
  return false;
}

// Returns how many sessions were closed while all lived.
uint64_t use_now_and_then(uint64_t seed) {
  std::mt19937_64 random(seed);
  SimOptions options;
  options.world = 2 + static_cast<int>(random() % 2);
  options.mapped = random() % 2 == 0;
  SimWorld world(seed, options, small_heaps());
  std::vector<std::unique_ptr<Host>> hosts;
  for (int rank = 0; rank < world.size(); ++rank) {
    hosts.push_back(std::make_unique<Host>(world, rank));
  }
  std::vector<User> users[3];
  for (int rank = 0; rank < world.size(); ++rank) {
    for (int other = 0; other < world.size(); ++other) {
      if (rank == other) continue;
      users[rank].emplace_back(world, *hosts[static_cast<size_t>(rank)], rank, other);
    }
  }
  const uint64_t dies_at = world.draw(4) == 0 ? world.draw(20'000) : kMostRounds;
  const uint64_t frees_at = world.draw(2) == 0 ? world.draw(20'000) : kMostRounds;
  bool has_died = false;
  bool has_freed = false;
  // Of a rank that is dead nothing more is expected.
  const auto all_done = [&] {
    for (int rank = has_died ? 1 : 0; rank < world.size(); ++rank) {
      for (const User& user : users[rank]) {
        if (!user.is_done()) return false;
      }
    }
    return true;
  };
  for (uint64_t round = 0; !all_done() && !testing::Test::HasFailure(); ++round) {
    if (round == kMostRounds) ADD_FAILURE() << "a use has not ended";
    world.step();
    // Seconds, in which nobody may use a session. What is on its way comes first, or much comes.
    if (world.draw(64) == 0)
      world.network().advance(static_cast<int64_t>(world.draw(8'000'000'000)));
    if (round == dies_at) {
      world.kill(0);
      has_died = true;
    }
    if (round == frees_at) {
      hosts.back()->free_memory();
      has_freed = true;
    }
    const bool is_open = std::ranges::any_of(
        hosts, [&](const auto& host) { return host != hosts.back() && host->has_open(); });
    if (has_freed && !has_died && world.size() == 2 && is_open) {
      EXPECT_FALSE(hosts.back()->is_reusable()) << "while the other rank has it open";
    }
    for (auto& of_rank : users) {
      for (User& user : of_rank) user.go_on();
    }
  }
  uint64_t closed = 0;
  for (const auto& host : hosts) closed += host->ended();
  // In the end nobody uses any, and all is given back.
  if (!has_died && !testing::Test::HasFailure()) {
    EXPECT_TRUE(comes_in_time(world, [&] {
      return std::ranges::all_of(hosts, [](const auto& host) {
        return host->sessions().count() == 0 && !host->has_open();
      });
    })) << "a session stays though nobody uses it";
    for (const auto& host : hosts) host->free_memory();
    EXPECT_TRUE(comes_in_time(world, [&] {
      return std::ranges::all_of(hosts, [](const auto& host) { return host->is_reusable(); });
    })) << "memory that nobody has open is not given back";
  }
  return has_died ? 0 : closed;
}

TEST(Sessions, ComeAndGo) {
  uint64_t closed = 0;
  const uint64_t ran =
      for_each_seed(kSeeds, [&](uint64_t seed) { closed += use_now_and_then(seed); });
  std::printf("%" PRIu64 " sessions closed in %" PRIu64 " worlds\n", closed, ran);
  if (ran >= kEnoughToCount) {
    EXPECT_GT(closed, 2 * ran);
  }
}

}  // namespace
}  // namespace rdmacoll::sessions_sim_test
