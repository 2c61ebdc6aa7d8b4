// ShmAddress and region key as bytes: a tag with the version, then the fields in order, in the byte
// order of the host: who reads them on another host stops at the host id. Floor: transport/shm.
#include "csrc/transport/shm/address.h"

#include <cstring>
#include <type_traits>

#include "csrc/transport/shm/host_id.h"

namespace rdmacoll {
namespace {

constexpr uint64_t kAddressTag = 0x3243'6d68'7300'0001;  // "\1\0shmC2"
constexpr uint64_t kKeyTag = 0x324b'6d68'7300'0001;      // "\1\0shmK2"

class Writer {
 public:
  template <typename T>
  Writer& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& add_text(const std::string& text) {
    add(static_cast<uint16_t>(text.size()));
    bytes_ += text;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Once the bytes run out everything further fails, so one check at the end is enough.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  Reader& get(T* value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (take(sizeof *value)) std::memcpy(value, bytes_.data() + at_ - sizeof *value, sizeof *value);
    return *this;
  }
  Reader& get_text(std::string* text, size_t most) {
    uint16_t size = 0;
    get(&size);
    if (size > most) good_ = false;
    if (take(size)) *text = bytes_.substr(at_ - size, size);
    return *this;
  }
  bool complete() const { return good_ && at_ == bytes_.size(); }

 private:
  bool take(size_t count) {
    good_ = good_ && count <= bytes_.size() - at_;
    if (good_) at_ += count;
    return good_;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

}  // namespace

std::string socket_name(const ProcessId& process) { return "rdmacoll-" + hex(process); }

std::string encode(const ShmAddress& address) {
  return Writer()
      .add(kAddressTag)
      .add(address.process)
      .add(address.pid)
      .add(address.network_namespace)
      .add_text(address.host)
      .take();
}

std::string encode(const RegionKey& key) {
  return Writer()
      .add(kKeyTag)
      .add(key.owner)
      .add(key.region)
      .add(key.generation)
      .add(key.bytes)
      .take();
}

Result<ShmAddress> parse_shm_address(const std::string& bytes) {
  ShmAddress address;
  uint64_t tag = 0;
  Reader reader(bytes);
  reader.get(&tag)
      .get(&address.process)
      .get(&address.pid)
      .get(&address.network_namespace)
      .get_text(&address.host, kMaxHostIdBytes);
  if (!reader.complete() || tag != kAddressTag) {
    return Status(StatusCode::InvalidArgument,
                  "peer address of " + std::to_string(bytes.size()) +
                      " bytes is not one that this version of rdmacoll writes; run the same "
                      "version on all ranks");
  }
  return address;
}

Result<RegionKey> parse_region_key(std::string_view bytes) {
  RegionKey key;
  uint64_t tag = 0;
  Reader reader(bytes);
  reader.get(&tag).get(&key.owner).get(&key.region).get(&key.generation).get(&key.bytes);
  if (!reader.complete() || tag != kKeyTag) {
    return Status(StatusCode::InvalidArgument,
                  "region key of " + std::to_string(bytes.size()) +
                      " bytes is not one that this version of rdmacoll made");
  }
  return key;
}

}  // namespace rdmacoll
