// JobKey. Floor: base.
#include "csrc/base/job_key.h"

namespace rdmacoll {

Result<JobKey> JobKey::load(const std::string& secret) {
  JobKey key;
  if (secret.empty()) return key;
  auto hmac = Hmac::load();
  if (!hmac.ok()) return hmac.status();
  key.secret_ = secret;
  key.hmac_ = hmac.take();
  return key;
}

Mac JobKey::sign(std::string_view purpose, std::string_view bytes) const {
  if (!given()) return {};
  std::string all(purpose);
  all += '\0';  // no purpose holds it: where one ends is beyond doubt
  all += bytes;
  return hmac_->of(secret_, all);
}

}  // namespace rdmacoll
