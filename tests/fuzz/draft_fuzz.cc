// A file that programs write, cut and read through the mount in any order, and whose servers are
// full at times: it is as a string to which the same was done, before and after it is stored.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/target.h"
#include "tests/unit/files/tables_for_test.h"

namespace rdmacoll::fuzz {
namespace {

struct Step {
  uint8_t kind = 0;
  uint8_t fill = 0;
  uint16_t count = 0;
  uint32_t first = 0;
};
// Both ends of a write: less than what a draft has in memory of its servers.
constexpr uint32_t kMostBytes = 30'000;

class Run {
 public:
  Run() { begin({}); }
  ~Run() { draft_.reset(); }

  void take(const Step& step) {
    const uint32_t first = step.first % kMostBytes;
    const uint32_t count = step.count % kMostBytes;
    switch (step.kind % 6) {
      case 0:
      case 1:
        return write(step.kind % 2 == 0 ? first : std::min<uint64_t>(model_.size(), kMostBytes),
                     std::string(count, static_cast<char>(step.fill)));
      case 2:
        return resize(first);
      case 3:
        return read(first, count);
      case 4:
        tables_.has_room = !tables_.has_room;
        return;
      default:
        return store(step.fill % 2 == 0);
    }
  }

  void end() {
    tables_.has_room = true;
    store(true);
    RDMACOLL_CHECK(files::text_of(tables_, version_, 0, model_.size()) == model_);
  }

 private:
  void begin(const files::Parts& version) {
    version_ = version;
    draft_.emplace(files::Draft::Host{tables_, blocks_, [this] { return Result(++numbers_); }},
                   version_);
  }

  void write(uint64_t first, const std::string& data) {
    const Status written = draft_->write(first, files::bytes_in(data));
    if (!written.ok()) {
      RDMACOLL_CHECK(!tables_.has_room);
      check_error(written);
      return learn();
    }
    if (data.empty()) return;
    if (model_.size() < first + data.size()) model_.resize(first + data.size());
    model_.replace(first, data.size(), data);
  }

  void resize(uint64_t bytes) {
    const Status resized = draft_->resize(bytes);
    if (resized.ok()) return model_.resize(bytes);
    RDMACOLL_CHECK(!tables_.has_room);
    check_error(resized);
    learn();
  }

  std::string text_of(uint64_t first, uint64_t count) {
    std::string text(count, '?');
    auto had = draft_->read(first, std::as_writable_bytes(std::span(text)));
    RDMACOLL_CHECK(had.ok());
    text.resize(had.value());
    return text;
  }

  // After a write that has failed some of it may be there.
  void learn() { model_ = text_of(0, draft_->bytes()); }

  void read(uint64_t first, uint64_t count) {
    const std::string text = text_of(first, count);
    RDMACOLL_CHECK(text == (first < model_.size() ? model_.substr(first, count) : ""));
  }

  void store(bool again) {
    const Status stored = draft_->store();
    RDMACOLL_CHECK(draft_->bytes() == model_.size());
    if (!stored.ok()) return check_error(stored);
    const files::Parts parts = draft_->parts();
    RDMACOLL_CHECK(files::bytes_of(parts) == model_.size());
    if (again) return begin(parts);
    draft_->publish(parts);
  }

  files::TablesForTest tables_;
  files::Blocks blocks_{tables_};
  uint32_t numbers_ = 0;
  std::string model_;
  files::Parts version_;
  std::optional<files::Draft> draft_;
};

}  // namespace

std::vector<std::string> seeds() {
  std::string all;
  for (const Step& step :
       {Step{0, 'a', 300, 0}, Step{5}, Step{0, 'b', 10, 100}, Step{2, 0, 0, 50}, Step{4}, Step{5},
        Step{1, 'c', 20'000, 0}, Step{4}, Step{5, 1}, Step{1, 'd', 20'000, 0},
        Step{3, 0, 1000, 19'500}, Step{0, 'e', 5, 29'000}}) {
    all += bytes_of(step);
  }
  return {all};
}

void run(const std::string& bytes) {
  Run file;
  for (size_t at = 0; at + sizeof(Step) <= bytes.size() && at < 100 * sizeof(Step);
       at += sizeof(Step)) {
    Step step;
    std::memcpy(&step, bytes.data() + at, sizeof(step));
    file.take(step);
  }
  file.end();
}

}  // namespace rdmacoll::fuzz
