// Cards. Floor: engine/connect. Thread: see cards.h.
#include "csrc/engine/connect/cards.h"

namespace rdmacoll {

Cards::Cards(const std::vector<std::string>& records) : begins_{0} {
  size_t bytes = 0;
  for (const std::string& record : records) bytes += record.size();
  bytes_.reserve(bytes);
  for (const std::string& record : records) {
    bytes_ += record;
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

GroupRecord Cards::of(uint32_t rank) const {
  return GroupRecord::decode(bytes_.substr(begins_[rank], begins_[rank + 1] - begins_[rank]))
      .take();
}

}  // namespace rdmacoll
