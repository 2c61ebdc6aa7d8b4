// A libcrypto that loads and computes no signature. It fails for most keys, as one in FIPS mode
// does; for the key "short" it gives fewer bytes than a signature has. Floor: tests.
#include <cstddef>
#include <cstring>

extern "C" {

const void* EVP_sha256() {
  static const char it = 0;
  return &it;
}

unsigned char* HMAC(const void*, const void* key, int key_bytes, const unsigned char*, size_t,
                    unsigned char* mac, unsigned int* mac_bytes) {
  if (key_bytes != 5 || std::memcmp(key, "short", 5) != 0) return nullptr;
  *mac_bytes = 20;
  return mac;
}
}
