// LentMemory. Floor: ps/server. Thread: the server's.
#include "csrc/ps/server/lent_memory.h"

#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

Status LentMemory::find(Push& push) const {
  const auto found = all_.find({push.head.worker, push.head.loan});
  Mapped mapped = found == all_.end() ? Mapped() : found->second();
  if (mapped.bytes.empty()) return Status(StatusCode::Unsupported, "what is lent cannot be read");
  const uint64_t offset = push.lent->offset;
  const uint64_t bytes = push.head.count * sizeof(float);
  const uint64_t all = mapped.bytes.size();
  if (offset % sizeof(float) != 0 || offset > all || bytes > all - offset) {
    return makes_no_sense(kRequest);
  }
  push.values = {reinterpret_cast<const float*>(mapped.bytes.data() + offset), push.head.count};
  push.keeps = std::move(mapped.keeps);
  return Status();
}

}  // namespace rdmacoll::ps
