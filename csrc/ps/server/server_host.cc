// ServerHost. Floor: ps/server. Thread: see server_host.h.
#include "csrc/ps/server/server_host.h"

#include <algorithm>
#include <future>
#include <utility>

namespace rdmacoll::ps {
namespace {

// How often it looks, whether or not something comes, for connections that have failed and for
// signals, and says how it stands.
constexpr int64_t kLookMs = 20;
constexpr int64_t kLookNs = kLookMs * 1'000'000;
constexpr int64_t kCountNs = 100'000'000;  // of all tables, which may be many
constexpr int64_t kMeetMs = 10'000;
// In which what a primary has read of a worker that has ended is handed on.
constexpr int64_t kForwardedNs = 10'000'000'000;

}  // namespace

Result<std::unique_ptr<ServerHost>> ServerHost::make(Remote& remote, std::string own_address,
                                                     ServerId me, uint32_t replicas, BucketMap map,
                                                     uint64_t memory_bytes,
                                                     const std::vector<uint32_t>& dropped) {
  auto calls = begin_to_hear(remote);
  if (!calls.ok()) return calls.status();
  std::unique_ptr<ServerHost> host(new ServerHost(remote, calls.take(), std::move(own_address), me,
                                                  replicas, std::move(map), memory_bytes));
  for (const uint32_t table : dropped) host->server_.drop(table);
  return host;
}

// --- any thread ----------------------------------------------------------------------------------

void ServerHost::order(std::function<void()> what) {
  {
    const std::lock_guard lock(mutex_);
    orders_.push_back(std::move(what));
  }
  told_->has_orders.store(true);
  remote_.watch([] { return true; }, "", 0);  // so that what serve() waits for is looked at
}

// It sleeps beside the engine: else it would drive that, and serve() had to wait for it.
Status ServerHost::hear(int64_t timeout_ms, const InterruptCheck& interrupt) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto is_called = [this] { return told_->has_calls.exchange(false); };
      if (!called_.wait_until(lock, until, is_called)) {
        return Status(StatusCode::Timeout, "nobody has called");
      }
    }
    Result<Heard> heard = hear_call({remote_, kMeetMs, interrupt});
    // It may be told once more of a call that it is about to take: then there is none.
    if (heard.status().code() == StatusCode::Timeout) continue;
    if (!heard.ok()) return heard.status();
    order([this, heard = heard.take()] {
      if (heard.lent != nullptr) return lend(heard);
      server_.add(heard.connection, heard.from);
      add(heard.connection);
    });
    return Status();
  }
}

Status ServerHost::call(ServerId server, const std::string& address, int64_t timeout_ms,
                        const InterruptCheck& interrupt) {
  auto connection = call_server({remote_, timeout_ms, interrupt}, {own_address_, me_}, address,
                                "server " + std::to_string(server));
  if (!connection.ok()) return connection.status();
  order([this, server, connection = connection.take()] {
    server_.add_backup(server, connection);
    add(connection);
  });
  return Status();
}

void ServerHost::adopt(const BucketMap& map, int64_t known_ns) {
  order([this, map, known_ns] { server_.adopt(map, known_ns); });
}

void ServerHost::give_up(ServerId server) {
  order([this, server] { server_.give_up(server); });
}

// Readers are waited for here, while serve() goes on.
Status ServerHost::drop(const std::vector<uint32_t>& tables, int64_t timeout_ms) {
  using Memories = std::vector<std::shared_ptr<void>>;
  const auto dropped = std::make_shared<std::promise<Memories>>();
  auto memories = dropped->get_future();
  order([this, tables, dropped] {
    Memories all;
    for (const uint32_t table : tables) all.push_back(server_.drop(table));
    dropped->set_value(std::move(all));
  });
  if (memories.wait_for(std::chrono::milliseconds(timeout_ms)) != std::future_status::ready) {
    return Status(StatusCode::Timeout, "the server does not serve");
  }
  memories.get();
  return Status();
}

void ServerHost::stop() {
  told_->is_stopped.store(true);
  order([] {});
}

ServerStats ServerHost::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::optional<ServerHost::Wish> ServerHost::wish() const {
  const std::lock_guard lock(mutex_);
  return wish_;
}

void ServerHost::wait_wish(int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  wished_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                   [this] { return wish_.has_value(); });
}

// --- serve()'s -----------------------------------------------------------------------------------

bool ServerHost::take_orders() {
  if (!told_->has_orders.exchange(false)) return false;
  std::vector<std::function<void()>> orders;
  {
    const std::lock_guard lock(mutex_);
    orders = std::exchange(orders_, {});
  }
  for (const auto& order : orders) order();
  return true;
}

void ServerHost::add(std::shared_ptr<RingConnection> connection) {
  auto all = std::make_shared<RingConnections>(*connections_);
  all->push_back(std::move(connection));
  connections_ = std::move(all);
}

// Its memory stays mapped when the worker has ended: this server may have to read what the primary
// has read before. The letter is closed last, which tells the worker; one whose memory cannot be
// mapped is never told.
void ServerHost::lend(const Heard& heard) {
  const auto use = heard.lent->use();
  if (use == nullptr || use->memory->region.base == nullptr) return remote_.close(heard.lent);
  const LoanId id{heard.worker, heard.loan};
  loans_[id] = {heard.lent};
  server_.lent().add(id, [lent = heard.lent, memory = use->memory] {
    if (lent->is_revoked()) return Mapped();
    return Mapped{{memory->region.base + lent->as.offset, lent->info.bytes}, memory};
  });
  remote_.close(heard.letter);
}

void ServerHost::drop_loans() {
  const int64_t now_ns = clock_.now_ns();
  for (auto& [id, loan] : loans_) {
    const bool has_ended = loan.drop_ns == 0 && !loan.opened->failure().ok();
    if (has_ended) loan.drop_ns = loan.opened->is_revoked() ? now_ns : now_ns + kForwardedNs;
  }
  std::erase_if(loans_, [&](const auto& one) {
    if (one.second.drop_ns == 0 || now_ns < one.second.drop_ns) return false;
    server_.lent().end(one.first);
    remote_.close(one.second.opened);
    return true;
  });
}

bool ServerHost::has_failed() const {
  return std::ranges::any_of(*connections_,
                             [](const auto& connection) { return !connection->failure().ok(); });
}

void ServerHost::drop_failed() {
  if (!has_failed()) return;
  auto all = std::make_shared<RingConnections>(*connections_);
  std::erase_if(*all, [](const auto& connection) { return !connection->failure().ok(); });
  connections_ = std::move(all);
}

void ServerHost::count() {
  ServerStats stats = server_.stats();
  stats.memory_bytes = memory_.used_bytes();
  const std::lock_guard lock(mutex_);
  stats_ = std::move(stats);
}

void ServerHost::tell() {
  auto wanted = server_.wish();
  const std::lock_guard lock(mutex_);
  wish_.reset();
  if (!wanted) return;
  wish_.emplace(server_.map(), *wanted);
  wished_.notify_all();
}

Status ServerHost::look_about(const InterruptCheck& interrupt) {
  const int64_t now_ns = clock_.now_ns();
  if (now_ns < look_again_ns_ && !has_failed()) return Status();
  look_again_ns_ = now_ns + kLookNs;
  tell();
  if (now_ns >= count_again_ns_) {
    count_again_ns_ = now_ns + kCountNs;
    count();
  }
  drop_failed();
  drop_loans();
  return interrupt ? interrupt() : Status();
}

Status ServerHost::serve(const InterruptCheck& interrupt) {
  while (!told_->is_stopped.load()) {
    if (!calls_->is_empty()) {
      const std::lock_guard lock(mutex_);
      told_->has_calls.store(true);
      called_.notify_one();
    }
    const bool had_any = take_orders() | server_.turn();
    RDMACOLL_RETURN_IF_ERROR(look_about(interrupt));
    if (had_any) continue;
    const WorkPtr news = remote_.watch(
        [calls = calls_, told = told_, connections = connections_] {
          return told->is_stopped.load() || told->has_orders.load() ||
                 (!calls->is_empty() && !told->has_calls.load()) ||
                 std::ranges::any_of(*connections,
                                     [](const auto& connection) { return connection->has_news(); });
        },
        "", kLookMs);
    const Status waited = remote_.wait(*news, -1, interrupt);
    if (!waited.ok() && waited.code() != StatusCode::Timeout) return waited;
  }
  tell();
  count();
  return Status();
}

}  // namespace rdmacoll::ps
