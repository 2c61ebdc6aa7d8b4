// SipHash-2-4: a short tag under a key, of what is too small and too frequent for an HMAC. Nobody
// without the key can make the tag of other bytes.
// Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
// Floor: base. Thread: pure functions.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rdmacoll {

static_assert(std::endian::native == std::endian::little);

struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

class SipHash {
 public:
  explicit SipHash(const SipKey& key)
      : v0_(key.low ^ 0x736f6d6570736575),
        v1_(key.high ^ 0x646f72616e646f6d),
        v2_(key.low ^ 0x6c7967656e657261),
        v3_(key.high ^ 0x7465646279746573) {}

  // Eight bytes more.
  SipHash& add(uint64_t word) {
    bytes_ += sizeof(word);
    compress(word);
    return *this;
  }
  // The last bytes, any number of them, and the tag of all.
  uint64_t finish(const void* data = nullptr, size_t bytes = 0) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, at, sizeof(word));
      add(word);
    }
    uint64_t last = (bytes_ + bytes) << 56;
    for (size_t i = 0; i < bytes; ++i) last |= uint64_t{at[i]} << (8 * i);
    compress(last);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void compress(uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
  uint64_t bytes_ = 0;
};

}  // namespace rdmacoll
