// Hmac: the test vectors of RFC 4231, and what is said where there is no libcrypto. JobKey: what a
// signature is good for.
#include "csrc/base/hmac.h"

#include <gtest/gtest.h>

#include <string>

#include "csrc/base/job_key.h"

namespace rdmacoll::hmac_test {
namespace {

std::string hex(const Mac& mac) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : mac) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

std::string hmac(const std::string& key, const std::string& bytes) {
  auto loaded = Hmac::load();
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? hex(loaded.value().of(key, bytes).take()) : "";
}

// Case 5 is about a shortened signature, which we do not use.
TEST(Hmac, GivesWhatRfc4231Says) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counting;
  for (char byte = 1; byte <= 25; ++byte) counting += byte;
  EXPECT_EQ(hmac(counting, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size "
                 "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Hmac, WithoutALibraryTheRemedyIsSaid) {
  const auto loaded = Hmac::load({"libcrypto.so.none", "libc.so.6"});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), StatusCode::Unsupported);
  for (const char* word : {"libcrypto.so.none", "libc.so.6 has no HMAC", "install libssl3"}) {
    EXPECT_NE(loaded.status().message().find(word), std::string::npos) << loaded.status().message();
  }
}

// As in FIPS mode. It used to end the process.
TEST(Hmac, ALibraryThatDoesNotComputeIsAnErrorThatNamesIt) {
  auto loaded = Hmac::load({REFUSING_LIBCRYPTO});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  for (const char* key : {"the secret of the job", "short"}) {
    const Status refused = loaded.value().of(key, "bytes").status();
    EXPECT_EQ(refused.code(), StatusCode::Unsupported);
    for (const char* word : {REFUSING_LIBCRYPTO, "FIPS", "OPENSSL_CONF"}) {
      EXPECT_NE(refused.message().find(word), std::string::npos) << refused.message();
    }
  }
}

// So a rank says so when it begins to make a group, and the others hear it.
TEST(JobKey, ALibraryThatDoesNotComputeGivesNoKey) {
  const auto key = JobKey::of("the secret of the job", Hmac::load({REFUSING_LIBCRYPTO}));
  EXPECT_EQ(key.status().code(), StatusCode::Unsupported);
}

TEST(Hmac, EveryBitCounts) {
  const Mac one = Hmac::load().take().of("key", "bytes").take();
  for (size_t bit = 0; bit < 8 * one.size(); ++bit) {
    Mac other = one;
    other[bit / 8] = static_cast<uint8_t>(other[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(equal(one, other));
  }
  EXPECT_TRUE(equal(one, one));
}

TEST(JobKey, ASignatureHoldsForOneKeyOnePurposeAndTheseBytes) {
  const JobKey key = JobKey::load("the secret of the job").take();
  const JobKey other = JobKey::load("the secret of another").take();
  const Mac signature = key.sign("purpose", "bytes").take();
  EXPECT_TRUE(key.holds("purpose", "bytes", signature));
  EXPECT_FALSE(key.holds("purpose", "byte", signature));
  EXPECT_FALSE(key.holds("purposeb", "ytes", signature));
  EXPECT_FALSE(other.holds("purpose", "bytes", signature));
}

TEST(JobKey, WithoutASecretNothingSignedIsTaken) {
  const JobKey none = JobKey::load("").take(), key = JobKey::load("the secret of the job").take();
  EXPECT_FALSE(none.given());
  EXPECT_TRUE(key.given());
  EXPECT_TRUE(none.holds("purpose", "bytes", none.sign("purpose", "other bytes").take()));
  EXPECT_FALSE(none.holds("purpose", "bytes", key.sign("purpose", "bytes").take()));
  EXPECT_FALSE(key.holds("purpose", "bytes", none.sign("purpose", "bytes").take()));
}

}  // namespace
}  // namespace rdmacoll::hmac_test
