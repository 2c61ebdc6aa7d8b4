// SealedBootstrap. Floor: engine/connect.
#include "csrc/engine/connect/sealed_bootstrap.h"

#include <cstring>
#include <string_view>

#include "csrc/base/process_id.h"
#include "csrc/engine/connect/group_record.h"
#include "csrc/engine/work/call.h"

namespace rdmacoll {
namespace {

constexpr std::string_view kNonce = "rdmanon1";   // and 128 random bits
constexpr std::string_view kSealed = "rdmasea1";  // and the signature, and the record
constexpr const char* kPurpose = "rdmacoll record 2";
constexpr const char* kNoncesPurpose = "rdmacoll nonces 1";

std::string text_of(std::string_view bytes) { return std::string(bytes); }

bool is_nonce(const std::string& bytes) {
  return bytes.size() == kNonce.size() + sizeof(ProcessId) && bytes.starts_with(kNonce);
}

Status declined(const std::string& bytes, uint32_t rank) {
  return Status(StatusCode::PeerFailed, "cannot reach " + rank_name(rank) + ": " +
                                            GroupRecord::decode(bytes).status().message());
}

}  // namespace

Result<std::vector<std::string>> SealedBootstrap::all_gather(const std::string& mine,
                                                             Deadline deadline) {
  auto drawn = random_process_id();
  if (!drawn.ok()) return drawn.status();
  const std::string nonce = text_of(kNonce) + text_of(bytes_to_sign(drawn.value()));
  auto first = below_.all_gather(key_.given() ? nonce : mine, deadline);
  if (!first.ok()) return first.status();
  if (first.value().size() != world_) {
    return Status(StatusCode::Mismatch, "the rendezvous gave " +
                                            std::to_string(first.value().size()) + " records for " +
                                            std::to_string(world_) + " ranks");
  }
  RDMACOLL_RETURN_IF_ERROR(check_first(first.value()));
  if (!key_.given()) return first;

  first.value()[rank_] = nonce;  // whatever has come: this is what makes the exchange a new one
  std::string nonces;
  for (const std::string& one : first.value()) nonces += one;
  // In short, for thousands of records: to go through all nonces for each is a matter of seconds.
  auto exchange = key_.sign(kNoncesPurpose, nonces);
  auto signature =
      exchange.ok() ? key_.sign(kPurpose, signed_part(rank_, exchange.value(), mine)) : exchange;
  if (!signature.ok()) {
    below_.decline(decline_record(signature.status().message()));
    return signature.status();
  }
  auto sealed = below_.all_gather(
      text_of(kSealed) + text_of(bytes_to_sign(signature.value())) + mine, deadline);
  if (!sealed.ok()) return sealed.status();
  return opened(sealed.value(), exchange.value());
}

Status SealedBootstrap::check_first(const std::vector<std::string>& first) const {
  for (uint32_t rank = 0; rank < world_; ++rank) {
    if (is_nonce(first[rank]) == key_.given()) continue;
    if (is_declined(first[rank])) return declined(first[rank], rank);
    return Status(
        StatusCode::Mismatch,
        rank_name(rank) +
            (key_.given() ? " has no secret of the job, and " + rank_name(rank_) + " has"
                          : " has a secret of the job, and " + rank_name(rank_) + " has none") +
            "; " + kAboutSecrets);
  }
  return Status();
}

Result<std::vector<std::string>> SealedBootstrap::opened(const std::vector<std::string>& sealed,
                                                         const Mac& exchange) const {
  constexpr size_t kHead = kSealed.size() + sizeof(Mac);
  std::vector<std::string> records;
  for (uint32_t rank = 0; rank < sealed.size(); ++rank) {
    const std::string& bytes = sealed[rank];
    Mac signature{};
    bool good = bytes.size() >= kHead && bytes.starts_with(kSealed);
    if (good) {
      std::memcpy(signature.data(), bytes.data() + kSealed.size(), signature.size());
      const auto record = std::string_view(bytes).substr(kHead);
      good = key_.holds(kPurpose, signed_part(rank, exchange, record), signature);
    }
    if (is_declined(bytes)) return declined(bytes, rank);
    if (!good) {
      return Status(StatusCode::Mismatch,
                    "the record of " + rank_name(rank) +
                        " is not signed with this job's secret, for this group and now; " +
                        kAboutSecrets);
    }
    records.push_back(bytes.substr(kHead));
  }
  return records;
}

std::string SealedBootstrap::signed_part(uint32_t rank, const Mac& exchange,
                                         std::string_view record) const {
  // All but name and record have fixed sizes, the name says its own: no two cases read alike.
  const uint32_t numbers[] = {rank, world_, static_cast<uint32_t>(group_.size())};
  std::string all(reinterpret_cast<const char*>(numbers), sizeof numbers);
  return all + group_ + text_of(bytes_to_sign(exchange)) + text_of(record);
}

}  // namespace rdmacoll
