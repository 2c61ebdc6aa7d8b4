// What a rendezvous that is not to be trusted says another rank has said, in both exchanges of a
// SealedBootstrap. An input is a byte, whether this rank has a secret; the size of the first answer
// in two bytes; and both answers.
#include <algorithm>
#include <cstring>

#include "csrc/engine/connect/sealed_bootstrap.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

constexpr uint32_t kWorld = 2;

// Gives rank 0 back what it says, and these answers as rank 1's.
class Hostile final : public Bootstrap {
 public:
  Hostile(std::string first, std::string second) : answers_{std::move(first), std::move(second)} {}
  Result<std::vector<std::string>> all_gather(const std::string& mine, Deadline) override {
    RDMACOLL_CHECK(exchange_ < 2);
    return std::vector{mine, answers_[exchange_++]};
  }
  void decline(const std::string&) override {}

 private:
  const std::string answers_[2];
  size_t exchange_ = 0;
};

std::string input(bool with_secret, const std::string& first, const std::string& second) {
  return std::string(1, with_secret ? '\1' : '\0') + bytes_of(static_cast<uint16_t>(first.size())) +
         first + second;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string nonce = "rdmanon1" + std::string(16, 'n');
  const std::string sealed = "rdmasea1" + std::string(sizeof(Mac), 's') + "record";
  return {input(true, nonce, sealed), input(true, "rdmadeclno device", ""),
          input(true, "record", ""), input(false, "record", ""), input(false, nonce, "")};
}

void run(const std::string& bytes) {
  static const JobKey keys[] = {JobKey(), JobKey::load("the secret of the job").take()};
  uint16_t size = 0;
  if (bytes.size() < 1 + sizeof(size)) return;
  const bool with_secret = (bytes[0] & 1) != 0;
  std::memcpy(&size, bytes.data() + 1, sizeof(size));
  const std::string answers = bytes.substr(1 + sizeof(size));
  const std::string first = answers.substr(0, size);
  Hostile below(first, answers.substr(std::min<size_t>(size, answers.size())));
  const std::string group = "group";
  SealedBootstrap sealed(below, keys[with_secret], group, 0, kWorld);
  auto records = sealed.all_gather("mine", Deadline{});
  if (!records.ok()) return check_error(records.status());
  // Nobody guesses a signature over a nonce that has just been drawn.
  RDMACOLL_CHECK(!with_secret && records.value() == (std::vector<std::string>{"mine", first}));
}

}  // namespace rdmacoll::fuzz
