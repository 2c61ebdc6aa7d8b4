// SharedSegment over memfd_create(2). Floor: memory.
#include "csrc/memory/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "csrc/base/check.h"

namespace rdmacoll {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// Segments of so many bytes ask for huge pages; smaller ones would waste too much of theirs.
constexpr uint64_t kHugeFromBytes = 64ull << 20;

Status bad_size(uint64_t bytes) {
  return Status(StatusCode::InvalidArgument,
                "a shared segment cannot have " + std::to_string(bytes) + " bytes; use 1 to " +
                    std::to_string(std::numeric_limits<int64_t>::max()));
}

bool mappable(uint64_t bytes) {
  return bytes > 0 && bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

Result<std::byte*> map_shared(int fd, uint64_t bytes, int protection) {
  void* data = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return Status::from_errno("mapping a shared segment of " + std::to_string(bytes) + " bytes",
                              errno);
  }
  // Refused where the system has none for shared memory (docs/MEMORY.md), which is no error.
  if (bytes >= kHugeFromBytes) ::madvise(data, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

}  // namespace

// Mapped before it is sealed, so that this process can write to it.
Result<SharedSegment> SharedSegment::create(uint64_t bytes, Others others) {
  if (!mappable(bytes)) return bad_size(bytes);
  UniqueFd fd(::memfd_create("rdmacoll", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Status::from_errno("memfd_create", errno);
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::from_errno("sizing a shared segment to " + std::to_string(bytes) + " bytes",
                              errno);
  }
  Result<std::byte*> data = map_shared(fd.get(), bytes, PROT_READ | PROT_WRITE);
  if (!data.ok()) return data.status();
  SharedSegment segment(std::move(fd), data.value(), bytes, others);
  const int seals = others == Others::OnlyRead ? kSizeSeals | F_SEAL_FUTURE_WRITE : kSizeSeals;
  if (::fcntl(segment.fd(), F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
    return Status::from_errno("sealing a shared segment", errno);
  }
  return segment;
}

Result<SharedSegment> SharedSegment::map(const UniqueFd& received, uint64_t bytes) {
  if (!mappable(bytes)) return bad_size(bytes);
  const int seals = ::fcntl(received.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return Status(StatusCode::InvalidArgument,
                  "a received descriptor is not a shared segment with a sealed size");
  }
  struct stat file;
  if (::fstat(received.get(), &file) != 0) {
    return Status::from_errno("fstat of a received descriptor", errno);
  }
  if (static_cast<uint64_t>(file.st_size) < bytes) {
    return Status(StatusCode::InvalidArgument,
                  "a received segment holds " + std::to_string(file.st_size) +
                      " bytes, but its sender says " + std::to_string(bytes));
  }
  const bool is_read_only = (seals & F_SEAL_FUTURE_WRITE) != 0;
  Result<std::byte*> data =
      map_shared(received.get(), bytes, is_read_only ? PROT_READ : PROT_READ | PROT_WRITE);
  if (!data.ok()) return data.status();
  return SharedSegment(UniqueFd(), data.value(), bytes,
                       is_read_only ? Others::OnlyRead : Others::Write);
}

// The other is mapped twice for a moment, so that no address of it is ever without memory.
Status SharedSegment::take_place_of(SharedSegment& other) {
  RDMACOLL_CHECK(bytes_ == other.bytes_ && others_ == Others::Write &&
                 other.others_ == Others::Write);
  std::memcpy(data_, other.data_, bytes_);
  Result<std::byte*> elsewhere = map_shared(other.fd(), bytes_, PROT_READ | PROT_WRITE);
  if (!elsewhere.ok()) return elsewhere.status();
  void* const place =
      ::mmap(other.data_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd(), 0);
  if (place == MAP_FAILED) {
    const int why = errno;
    ::munmap(elsewhere.value(), bytes_);
    return Status::from_errno("mapping fresh pages", why);
  }
  ::munmap(data_, bytes_);
  data_ = std::exchange(other.data_, elsewhere.value());
  return Status();
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      others_(other.others_) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(others_, other.others_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace rdmacoll
