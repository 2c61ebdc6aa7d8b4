// JobKey: the job's secret as what it is good for: signing, and knowing what others have signed
// with it. Where the secret comes from is config.h's.
// Floor: base. Thread: a value, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "csrc/base/hmac.h"
#include "csrc/base/status.h"

namespace rdmacoll {

class JobKey {
 public:
  // Of a job without a secret: its signature is zeros, and it takes nothing else, so that nobody
  // with a secret meets one without.
  JobKey() = default;
  // An empty secret: a job without one. Unsupported: nothing on this machine can sign with it; a
  // first signature is made to find that out.
  static Result<JobKey> load(const std::string& secret);
  // The same with a library that has been loaded.
  static Result<JobKey> of(const std::string& secret, Result<Hmac> hmac);

  bool given() const { return hmac_.has_value(); }
  // The purpose keeps what was signed for one thing from serving for another.
  Result<Mac> sign(std::string_view purpose, std::string_view bytes) const;
  // False, too, where the library does not compute the signature any more.
  bool holds(std::string_view purpose, std::string_view bytes, const Mac& signature) const {
    auto right = sign(purpose, bytes);
    return right.ok() && equal(right.value(), signature);
  }

 private:
  std::string secret_;
  std::optional<Hmac> hmac_;
};

// For errors: why signatures do not hold, and what to do.
inline constexpr const char* kAboutSecrets =
    "all ranks must have the same secret: start them by one rdmarun, or let RDMACOLL_SECRET_FILE "
    "name files of the same content (or unset it) on all of them; else somebody who is not of this "
    "job takes part in the rendezvous";

// The bytes of a plain value without padding, to be signed.
template <typename T>
std::string_view bytes_to_sign(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace rdmacoll
