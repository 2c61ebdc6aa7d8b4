// SharedSegment: memory that several processes map, behind a descriptor and without a name: nothing
// to clean up after kill -9, and no limit of /dev/shm. Its size is sealed when it is made, so that
// whoever maps it cannot be cut short later (SIGBUS).
// Floor: memory. Thread: a value, one owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/memory/unique_fd.h"

namespace rdmacoll {

// What those may do whom its descriptor is passed to: the seal of one that is only read holds
// whatever they try.
enum class Others : uint8_t { Write, OnlyRead };

class SharedSegment {
 public:
  // Zeroed memory; pages are taken when they are first touched.
  static Result<SharedSegment> create(uint64_t bytes, Others others = Others::Write);
  // The memory behind a descriptor that another process passed. InvalidArgument when it is not a
  // sealed segment that holds `bytes`.
  static Result<SharedSegment> map(const UniqueFd& received, uint64_t bytes);

  // Copies the other's bytes, and is mapped where the other was from then on; the other is mapped
  // elsewhere. So who has the other's descriptor reaches nothing any more that this process uses.
  // Both were created here with equal sizes, for others to write to. Nobody here writes meanwhile.
  Status take_place_of(SharedSegment& other);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // What the others of this one may do; of one that was passed, this process.
  Others others() const { return others_; }
  // To pass on; only where the segment was made.
  int fd() const { return fd_.get(); }

 private:
  SharedSegment(UniqueFd fd, std::byte* data, uint64_t bytes, Others others)
      : fd_(std::move(fd)), data_(data), bytes_(bytes), others_(others) {}

  UniqueFd fd_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
  Others others_ = Others::Write;
};

}  // namespace rdmacoll
