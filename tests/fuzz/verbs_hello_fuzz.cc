// The handshake that comes by datagram, from anybody who knows the number and key of the listener.
#include "csrc/transport/verbs/connection/wire.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {

std::vector<std::string> seeds() {
  verbs::Hello hello;
  hello.from = {1, 2, 3};
  hello.to = {4, 5, 6};
  hello.stripes = verbs::kMaxStripes;
  for (uint32_t i = 0; i < verbs::kMaxStripes; ++i) hello.numbers[i] = 100 + i;
  verbs::Hello signed_one = hello;
  RDMACOLL_CHECK(signed_one.sign(JobKey::load("the secret of the job").take()).ok());
  return {bytes_of(hello), bytes_of(signed_one)};
}

void run(const std::string& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const std::optional<verbs::Hello> hello = verbs::parse_hello(data, bytes.size());
  if (!hello) return;
  RDMACOLL_CHECK(hello->stripes > 0 && hello->stripes <= verbs::kMaxStripes);
  RDMACOLL_CHECK(bytes_of(*hello) == bytes);
  // Of a key whose signature no seed holds.
  static const JobKey key = JobKey::load("the secret of another").take();
  RDMACOLL_CHECK(!hello->holds(key));
}

}  // namespace rdmacoll::fuzz
