// Loans. Floor: ps/client. Thread: any.
#include "csrc/ps/client/loans.h"

#include <algorithm>
#include <utility>

namespace rdmacoll::ps {
namespace {

constexpr int64_t kLoanRevokeMs = 50;  // a server that reads it is cut off then
constexpr uint64_t kStages = 16;       // shards that are copied while others are read

}  // namespace

std::string Loans::name_of(uint32_t number) const {
  return "rdmacoll.ps.loan." + std::to_string(worker_) + "." + std::to_string(number);
}

Loans::~Loans() {
  for (const auto& [number, made] : all_) {
    static_cast<void>(remote_.revoke(name_of(number), kLoanRevokeMs, {}));
  }
}

Result<LoanPtr> Loans::make(uint64_t bytes) {
  free_unused();
  auto memory = remote_.allocate(bytes, Others::OnlyRead);
  if (!memory.ok()) return memory.status();
  const std::lock_guard lock(mutex_);
  const uint32_t number = ++numbers_;
  RDMACOLL_RETURN_IF_ERROR(
      remote_.expose({.name = name_of(number), .bytes = bytes}, memory.value(), 0));
  auto loan = std::make_shared<const Loan>(memory.take(), number);
  all_.emplace(number, Made{loan});
  return loan;
}

// Those that nobody holds any more. Nothing of them is pushed: who pushes holds them.
void Loans::free_unused() {
  std::vector<uint32_t> unused;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const auto& made) {
      if (!made.second.loan.expired()) return false;
      unused.push_back(made.first);
      return true;
    });
  }
  for (const uint32_t number : unused) {
    static_cast<void>(remote_.revoke(name_of(number), kLoanRevokeMs, {}));
  }
}

void Loans::lend(const Loan& loan, ServerId server, const std::string& address,
                 const Meeting& meeting) {
  const Lending lending{own_address_, name_of(loan.number), worker_, loan.number};
  auto posted = lend_to_server(meeting, lending, address, "server " + std::to_string(server));
  if (!posted.ok()) return;  // it is sent what is pushed
  const std::lock_guard lock(mutex_);
  all_.at(loan.number).lent[server] = posted.take();
}

void Loans::lend_all(ServerId server, const std::string& address, const Meeting& meeting) {
  forget(server);
  std::vector<LoanPtr> loans;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, made] : all_) {
      if (auto loan = made.loan.lock()) loans.push_back(std::move(loan));
    }
  }
  for (const LoanPtr& loan : loans) lend(*loan, server, address, meeting);
}

void Loans::forget(ServerId server) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, made] : all_) made.lent.erase(server);
}

Result<LoanPtr> Loans::make_stage() {
  auto loan = make(kStages * kShardElements * sizeof(float));
  if (!loan.ok()) return loan;
  auto* const all = reinterpret_cast<float*>(loan.value()->memory->data());
  for (uint64_t i = 0; i < kStages; ++i) {
    // With an owner of its own, so that it is seen when nobody else holds it.
    const auto owner = std::make_shared<LoanPtr>(loan.value());
    stage_.emplace_back(owner, all + i * kShardElements);
  }
  return loan;
}

std::optional<std::shared_ptr<float>> Loans::stage(ServerId primary, ServerId backup) const {
  if (stage_.empty()) return std::nullopt;
  const std::span<const std::byte> any = std::as_bytes(std::span(stage_[0].get(), 1));
  if (!find(primary, any) || !find(backup, any)) return std::nullopt;
  const auto is_free = [](const auto& room) { return room.use_count() == 1; };
  const auto free = std::ranges::find_if(stage_, is_free);
  return free == stage_.end() ? nullptr : *free;
}

std::optional<LentPlace> Loans::find(ServerId server, std::span<const std::byte> bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, made] : all_) {
    const LoanPtr loan = made.loan.lock();
    if (loan == nullptr) continue;
    const auto* const begin = loan->memory->data();
    const uint64_t all = loan->memory->bytes();
    if (bytes.data() < begin || bytes.data() + bytes.size() > begin + all) continue;
    const auto lent = made.lent.find(server);
    if (lent == made.lent.end() || !lent->second->done() || !lent->second->status().ok()) break;
    return LentPlace{number, static_cast<uint64_t>(bytes.data() - begin)};
  }
  return std::nullopt;
}

}  // namespace rdmacoll::ps
