// PsWorld. Floor: tests. Thread: one at a time.
#include "tests/sim/ps/ps_world.h"

#include <algorithm>

namespace rdmacoll::ps {

// A worker: its program is a fiber, which goes on in the scheduler's steps.
class PsWorld::Worker final : public Surroundings {
 public:
  Worker(PsWorld& world, uint32_t number, std::function<void(Client&, uint32_t)> body)
      : world_(world),
        number_(number),
        client_(number + 1, world.map_, *this),
        fiber_([this, number, body = std::move(body)](Fiber&) { body(client_, number); }) {}

  const Clock& clock() const override { return world_.clock_; }
  Status wait(int64_t, const InterruptCheck&) override {
    fiber_.yield();
    return world_.is_over_ ? Status(StatusCode::Interrupted, "the world has ended") : Status();
  }
  Result<BucketMap> newest_map() override {
    const int64_t now_ns = world_.clock_.now_ns();
    if (now_ns < store_again_ns_) return no_map();
    if (world_.draw(8) != 0) return world_.map_;
    store_again_ns_ = now_ns + static_cast<int64_t>(world_.draw(4 * kLeaseNs));
    return no_map();
  }
  Result<std::shared_ptr<Connection>> reach(ServerId server, const Limit&) override {
    const auto known = reached_.find(server);
    if (known != reached_.end() && !known->second->failure().ok()) return known->second->failure();
    if (!world_.is_alive(server)) return Status(StatusCode::PeerFailed, "it has ended");
    return call(server);
  }

  bool can_read(ServerId) const override { return true; }
  // Its memory, as it is now or was when it has ended, for as long as there is no other way to it.
  std::shared_ptr<const ShardRead> read(const ShardRange& range, const Limit&) override {
    if (world_.draw(10) == 0) return nullptr;
    const std::byte* const shard = memories_.at(range.server)->at(range.place);
    if (shard == nullptr) return nullptr;
    auto reader = std::make_shared<ShardReader>(shard, range);
    world_.reads_.push_back({memories_.at(range.server), reader, world_.draw(6) == 0,
                             world_.clock_.now_ns() + kLongestReadMs * 1'000'000});
    return reader;
  }

  // All else goes on between any two looks at it.
  Mapped mapped(ServerId server, uint32_t extent, const Limit&) override {
    if (world_.draw(2) == 0) fiber_.yield();
    if (world_.draw(100) == 0) return {};
    ++world_.mapped_;
    const auto& memory = memories_.at(server);
    return {memory->extent(extent), memory};
  }

  // Which server has the loan is drawn for each push. Once something is lost, it may not be found
  // any more: its worker has ended. A backup that does not find it has no part in the bucket then
  // until it is told all of it.
  std::optional<LentPlace> lent(ServerId server, std::span<const std::byte> bytes) override {
    if (!world_.is_alive(server) || world_.draw(3) == 0) return std::nullopt;
    const std::span<const std::byte> all = std::as_bytes(std::span(lent_));
    if (bytes.data() < all.data() || bytes.data() >= all.data() + all.size()) return std::nullopt;
    if (!world_.has_lost_ || world_.draw(10) != 0) {
      world_.hosts_[server].server->lent().add({number_ + 1, 1}, [all] { return Mapped{all}; });
    }
    return LentPlace{1, static_cast<uint64_t>(bytes.data() - all.data())};
  }
  // Room that was held before has something else in it then.
  std::optional<std::shared_ptr<float>> stage(ServerId, ServerId, uint64_t) override {
    if (world_.draw(2) == 0) return std::nullopt;
    const auto is_free = [](const auto& room) { return room.use_count() == 1; };
    const auto free = std::ranges::find_if(staged_, is_free);
    return free == staged_.end() ? nullptr : *free;
  }
  void end_loans(ServerId) override {}
  std::vector<float>& lent() { return lent_; }

  // It was started again.
  void forget(ServerId server) { reached_.erase(server); }
  std::shared_ptr<Connection> call(ServerId server) {
    Wire& made = world_.connect(std::nullopt, server);
    world_.hosts_[server].server->add(made.link.far);
    memories_[server] = world_.hosts_[server].memory;
    return reached_[server] = made.link.near;
  }
  Client& client() { return client_; }
  Fiber& fiber() { return fiber_; }

 private:
  static constexpr uint64_t kStaged = 32;  // elements, at most
  static Status no_map() { return Status(StatusCode::System, "the Store does not answer now"); }

  PsWorld& world_;
  const uint32_t number_;
  std::vector<float> lent_ = std::vector<float>(PsWorld::kLentElements + 2 * kStaged);
  std::vector<std::shared_ptr<float>> staged_{
      {std::make_shared<int>(), &lent_[PsWorld::kLentElements]},
      {std::make_shared<int>(), &lent_[PsWorld::kLentElements + kStaged]}};
  std::map<ServerId, std::shared_ptr<Connection>> reached_;
  std::map<ServerId, std::shared_ptr<HeapMemory>> memories_;
  int64_t store_again_ns_ = 0;
  Client client_;
  Fiber fiber_;
};

PsWorld::PsWorld(const Plan& plan, uint64_t seed)
    : plan_(plan),
      random_(seed),
      map_(BucketMap::spread(plan.servers, plan.replicas)),
      hosts_(plan.servers) {
  for (uint32_t i = 0; i < plan.servers; ++i) start(static_cast<ServerId>(i));
}

// It calls all the others, and they call it.
void PsWorld::start(ServerId server) {
  Host& host = hosts_[server];
  host = Host{};
  host.memory = std::make_shared<HeapMemory>(plan_.memory_bytes, clock_);
  host.server = std::make_unique<Server>(server, plan_.replicas, map_, *host.memory, clock_);
  host.server->adopt(map_, clock_.now_ns());
  while (host.dropped < dropped_.size()) host.server->drop(dropped_[host.dropped++]);
  for (ServerId other = 0; other < hosts_.size(); ++other) {
    if (other == server || !is_alive(other)) continue;
    connect_servers(server, other);
    connect_servers(other, server);
  }
  for (const auto& worker : workers_) worker->forget(server);
}

void PsWorld::connect_servers(ServerId from, ServerId to) {
  Wire& made = connect(from, to);
  hosts_[from].server->add_backup(to, made.link.near);
  hosts_[to].server->add(made.link.far, from);
}

void PsWorld::restart(ServerId server) {
  map_ = map_.without(server);
  start(server);
}

// Workers hear of it when the map names it.
ServerId PsWorld::join() {
  is_undisturbed_ = false;
  const auto server = static_cast<ServerId>(hosts_.size());
  hosts_.emplace_back();
  start(server);
  hosts_[server].server->arrive();
  return server;
}

void PsWorld::hand_over(ServerId server, uint64_t one_of) {
  is_undisturbed_ = false;
  if (!is_alive(server)) return;
  std::vector<uint32_t> buckets;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (draw(one_of) == 0) buckets.push_back(bucket);
  }
  hosts_[server].server->hand_over(buckets);
}

bool PsWorld::is_whole() const {
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (map_.of(bucket).backup == kNoServer) return false;
  }
  return true;
}

PsWorld::~PsWorld() { is_over_ = true; }

PsWorld::Wire& PsWorld::connect(std::optional<ServerId> from, ServerId to) {
  links_.push_back(std::make_unique<Wire>());
  Wire& made = *links_.back();
  made.from = from;
  made.to = to;
  made.link.there->most = 2 + draw(6);  // answers have room, as who asks reserves it
  return made;
}

void PsWorld::add_worker(std::function<void(Client&, uint32_t)> body) {
  const auto number = static_cast<uint32_t>(workers_.size());
  workers_.push_back(std::make_unique<Worker>(*this, number, std::move(body)));
  Worker& worker = *workers_.back();
  for (ServerId to = 0; to < hosts_.size(); ++to) {
    if (is_alive(to)) worker.client().add_server(to, worker.call(to));
  }
}

std::vector<float>& PsWorld::lent(const Client& client) {
  const auto is_its = [&](const auto& worker) { return &worker->client() == &client; };
  return (*std::ranges::find_if(workers_, is_its))->lent();
}

bool PsWorld::run(uint64_t most_steps) {
  const auto all_done = [this] {
    return std::ranges::all_of(workers_, [](const auto& one) { return one->fiber().is_done(); });
  };
  while (!all_done() && steps_ < most_steps) step();
  return all_done();
}

void PsWorld::step() {
  ++steps_;
  switch (draw(10)) {
    case 0:
    case 1:
      return turn_server();
    case 2:
      return turn_control();
    case 3: {
      Worker& worker = *workers_[draw(workers_.size())];
      if (!worker.fiber().is_done()) worker.fiber().resume();
      return;
    }
    case 4:
      return clock_.advance(static_cast<int64_t>(draw(plan_.most_tick_ns)));
    case 5:
    case 6:
      return turn_read();
    default:
      return turn_link();
  }
}

void PsWorld::turn_server() {
  Host& host = hosts_[draw(hosts_.size())];
  if (host.server != nullptr && !host.is_stopped) host.server->turn();
}

// What a server does beside: it reads the map, hears of it later, and asks for another one.
void PsWorld::turn_control() {
  Host& host = hosts_[draw(hosts_.size())];
  if (host.server == nullptr || host.is_cut_off || host.is_stopped) return;
  for (ServerId other = 0; other < hosts_.size(); ++other) {
    if (hosts_[other].is_stopped && draw(50) == 0) host.server->give_up(other);
  }
  if (host.dropped < dropped_.size() && draw(4) == 0) {
    host.server->drop(dropped_[host.dropped++]);
    return;
  }
  if (draw(2) == 0) {
    if (!host.read) {
      host.read.emplace(map_, clock_.now_ns());
    } else {
      host.server->adopt(host.read->first, host.read->second);
      host.read.reset();
    }
    return;
  }
  if (!host.wish) {
    if (auto wish = host.server->wish()) host.wish.emplace(host.server->map().version(), *wish);
    return;
  }
  if (map_.version() == host.wish->first) map_ = host.wish->second;
  host.wish.reset();
}

// One of a server whose process has ended may fail.
void PsWorld::turn_read() {
  if (reads_.empty()) return;
  const size_t which = draw(reads_.size());
  const bool is_late = clock_.now_ns() > reads_[which].until_ns;
  if (reads_[which].is_slow && draw(100) != 0 && !is_late) return;
  ShardReader& reader = *reads_[which].reader;
  if (is_late) reader.fail();
  for (uint64_t words = 1 + draw(8); words > 0 && !reader.outcome(); --words) reader.go_on();
  if (!reader.outcome() && draw(50) == 0) reader.fail();
  if (!reader.outcome()) return;
  if (*reader.outcome()) ++reads_ended_;
  reads_.erase(reads_.begin() + static_cast<ptrdiff_t>(which));
}

void PsWorld::turn_link() {
  Wire& one = *links_[draw(links_.size())];
  if (one.near_fails && draw(8) == 0) {
    one.near_fails = false;
    one.link.near->fail();
  }
  if (one.far_fails && draw(8) == 0) {
    one.far_fails = false;
    one.link.far->fail();
  }
  Pipe& pipe = *(draw(2) == 0 ? one.link.there : one.link.back);
  for (uint64_t left = draw(8) == 0 ? draw(8) : 1; left > 0; --left) pipe.deliver();
}

// Of what is under way some comes. An end that is lost hears of nothing any more.
void PsWorld::lose(Wire& connection, bool near_is_lost, bool far_is_lost) {
  for (Pipe* pipe : {connection.link.there.get(), connection.link.back.get()}) {
    for (uint64_t left = draw(pipe->under_way.size() + 1); left > 0; --left) pipe->deliver();
    for (auto& lost : pipe->under_way) pipe->lost.push_back(std::move(lost));
    pipe->under_way.clear();
    pipe->is_cut = true;
  }
  connection.near_fails = !near_is_lost;
  connection.far_fails = !far_is_lost;
}

void PsWorld::kill(ServerId server) {
  is_undisturbed_ = false;
  has_lost_ = true;
  for (const auto& one : links_) {
    if (one->from == server) lose(*one, true, false);
    if (one->to == server) lose(*one, false, true);
  }
  hosts_[server].server = nullptr;
}

void PsWorld::stop(ServerId server) {
  is_undisturbed_ = false;
  has_lost_ = true;
  hosts_[server].is_stopped = true;
}

// Others call it again, as they do when they hear of it.
void PsWorld::go_on(ServerId server) {
  hosts_[server].is_stopped = false;
  for (ServerId other = 0; other < hosts_.size(); ++other) {
    if (other != server && is_alive(other)) connect_servers(other, server);
  }
  for (const auto& worker : workers_) worker->forget(server);
}

void PsWorld::cut_link(ServerId one, ServerId other) {
  is_undisturbed_ = false;
  has_lost_ = true;
  for (const auto& link : links_) {
    const bool is_theirs =
        (link->from == one && link->to == other) || (link->from == other && link->to == one);
    if (is_theirs) lose(*link, false, false);
  }
}

void PsWorld::cut_off(ServerId server) {
  is_undisturbed_ = false;
  has_lost_ = true;
  hosts_[server].is_cut_off = true;
  for (const auto& one : links_) {
    const bool is_its = one->from == server || one->to == server;
    const bool of_a_worker = !one->from.has_value();
    if (is_its && (!of_a_worker || draw(2) == 0)) lose(*one, false, false);
  }
}

}  // namespace rdmacoll::ps
