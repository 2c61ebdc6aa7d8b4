// Hmac: libcrypto's HMAC() and EVP_sha256(), which are alike in OpenSSL 1.1 and 3. Floor: base.
#include "csrc/base/hmac.h"

#include <dlfcn.h>

namespace rdmacoll {

Result<Hmac> Hmac::load(std::initializer_list<const char*> libraries) {
  std::string tried;
  for (const char* file : libraries) {
    void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);  // for the life of the process
    if (library == nullptr) {
      tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
      continue;
    }
    const auto sha256 = reinterpret_cast<Digest>(dlsym(library, "EVP_sha256"));
    const auto hmac = reinterpret_cast<OneShot>(dlsym(library, "HMAC"));
    if (sha256 != nullptr && hmac != nullptr) return Hmac(file, sha256, hmac);
    tried += (tried.empty() ? "" : "; ") + std::string(file) + " has no HMAC";
  }
  return Status(StatusCode::Unsupported,
                "this job has a secret, and there is no libcrypto to sign with it (" + tried +
                    "); install libssl3 (Debian, Ubuntu) or openssl-libs (Red Hat, SUSE)");
}

Result<Mac> Hmac::of(std::string_view key, std::string_view bytes) const {
  Mac mac{};
  unsigned int mac_bytes = 0;
  const void* const sha256 = sha256_();
  const bool made = sha256 != nullptr && hmac_(sha256, key.data(), static_cast<int>(key.size()),
                                               reinterpret_cast<const unsigned char*>(bytes.data()),
                                               bytes.size(), mac.data(), &mac_bytes) != nullptr;
  if (made && mac_bytes == mac.size()) return mac;
  return Status(StatusCode::Unsupported,
                "this job has a secret, and " + library_ +
                    " does not compute HMAC-SHA256 with it (in FIPS mode it may refuse a key that "
                    "is too short, or have no such provider): see `openssl list -providers` and "
                    "OPENSSL_CONF on this host");
}

bool equal(const Mac& one, const Mac& other) {
  volatile uint8_t differs = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    differs = static_cast<uint8_t>(differs | (one[i] ^ other[i]));
  }
  return differs == 0;
}

}  // namespace rdmacoll
