// SealedBootstrap: a bootstrap whose records are signed with the job's secret, around one that is
// not to be trusted. Without a secret it adds nothing but that a rank with one is recognised.
// Floor: engine/connect. Thread: the one that makes the group.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/job_key.h"
#include "csrc/engine/connect/bootstrap.h"

namespace rdmacoll {

// Two exchanges below make one here. In the first every rank gives a nonce, in the second its
// record, signed together with who it is, in which group, and everybody's nonces. So a record is
// good for this rank of this exchange alone: one of an earlier job or group, or of another rank,
// was signed over other nonces, this rank's own among them, and is refused before anything of it is
// parsed. A rank that has no secret gives its record at once; by that the two kinds recognise each
// other, and every rank gets an error.
//
// What a rank declines with is not signed, as one without a usable secret must be heard, too: it
// can only make the group fail, which whoever writes in a Store can anyhow.
class SealedBootstrap final : public Bootstrap {
 public:
  // `group` is its name, the same on all its ranks. All but the numbers must outlive this.
  SealedBootstrap(Bootstrap& below, const JobKey& key, const std::string& group, uint32_t rank,
                  uint32_t world)
      : below_(below), key_(key), group_(group), rank_(rank), world_(world) {}

  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline deadline) override;
  void decline(const std::string& mine) override { below_.decline(mine); }

 private:
  // Whether all the others do in the first exchange what this rank does.
  Status check_first(const std::vector<std::string>& first) const;
  Result<std::vector<std::string>> opened(const std::vector<std::string>& sealed,
                                          const Mac& exchange) const;
  // What is signed: all that the record is good for, then the record. `exchange` stands for
  // everybody's nonces.
  std::string signed_part(uint32_t rank, const Mac& exchange, std::string_view record) const;

  Bootstrap& below_;
  const JobKey& key_;
  const std::string& group_;
  const uint32_t rank_;
  const uint32_t world_;
};

}  // namespace rdmacoll
