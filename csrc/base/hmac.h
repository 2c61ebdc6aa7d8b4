// Hmac: HMAC-SHA256 as the machine's libcrypto computes it, which is opened at run time, and
// comparing without telling by the time how much was right. What is signed, and with which key, is
// in job_key.h. No cryptography of our own.
// Floor: base. Thread: values, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "csrc/base/status.h"

namespace rdmacoll {

using Mac = std::array<uint8_t, 32>;

class Hmac {
 public:
  // The first of the libraries that is there; Unsupported names the remedy.
  static Result<Hmac> load(std::initializer_list<const char*> libraries = {"libcrypto.so.3",
                                                                           "libcrypto.so.1.1"});
  // Unsupported: the library refuses, as one in FIPS mode may.
  Result<Mac> of(std::string_view key, std::string_view bytes) const;

 private:
  using Digest = const void* (*)();
  using OneShot = unsigned char* (*)(const void* digest, const void* key, int key_bytes,
                                     const unsigned char* data, size_t bytes, unsigned char* mac,
                                     unsigned int* mac_bytes);

  Hmac(const char* library, Digest sha256, OneShot hmac)
      : library_(library), sha256_(sha256), hmac_(hmac) {}

  std::string library_;
  Digest sha256_;
  OneShot hmac_;
};

// Takes as long whatever is in them.
bool equal(const Mac& one, const Mac& other);

}  // namespace rdmacoll
