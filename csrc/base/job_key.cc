// JobKey. Floor: base.
#include "csrc/base/job_key.h"

namespace rdmacoll {

Result<JobKey> JobKey::load(const std::string& secret) {
  if (secret.empty()) return JobKey();
  return of(secret, Hmac::load());
}

Result<JobKey> JobKey::of(const std::string& secret, Result<Hmac> hmac) {
  if (!hmac.ok()) return hmac.status();
  JobKey key;
  key.secret_ = secret;
  key.hmac_ = hmac.take();
  RDMACOLL_RETURN_IF_ERROR(key.sign("", "").status());
  return key;
}

Result<Mac> JobKey::sign(std::string_view purpose, std::string_view bytes) const {
  if (!given()) return Mac{};
  std::string all(purpose);
  all += '\0';  // no purpose holds it: where one ends is beyond doubt
  all += bytes;
  return hmac_->of(secret_, all);
}

}  // namespace rdmacoll
