// ByteWriter and ByteReader: values one behind the other, in the byte order of all hosts that run
// rdmacoll (little). What is read comes from other processes: a reader that finds too little, or
// what makes no sense, says so at the end, and until then gives zeros. It allocates no more than a
// few times the bytes that there are. What the values mean is no matter of this file, and no
// structure is copied as a whole: its padding would be somebody's memory.
// Floor: base. Thread: values.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "csrc/base/check.h"

namespace rdmacoll {

static_assert(std::endian::native == std::endian::little);

using Bytes = std::vector<std::byte>;

template <typename T>
inline constexpr bool is_array_of_bytes = false;
template <size_t count>
inline constexpr bool is_array_of_bytes<std::array<uint8_t, count>> = true;

template <typename T>
concept PutsAsBytes = std::is_arithmetic_v<T> || std::is_enum_v<T> || is_array_of_bytes<T>;
// Any bytes are a value of it; of others flag() and up_to() look whether they are.
template <typename T>
concept GetsFromBytes = PutsAsBytes<T> && !std::is_enum_v<T> && !std::same_as<T, bool>;

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& bytes) : bytes_(bytes) {}

  template <PutsAsBytes T>
  void put(const T& value) {
    append(&value, sizeof value);
  }
  void put(std::string_view text) {
    put_count(text.size());
    append(text.data(), text.size());
  }
  void put(const std::vector<int64_t>& values) {
    put_count(values.size());
    append(values.data(), values.size() * sizeof(int64_t));
  }
  // How many follow.
  void put_count(size_t count) {
    RDMACOLL_CHECK(count <= UINT32_MAX);
    put(static_cast<uint32_t>(count));
  }

 private:
  void append(const void* data, size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }

  Bytes& bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}
  explicit ByteReader(std::string_view bytes) : left_(std::as_bytes(std::span(bytes))) {}

  template <GetsFromBytes T>
  T get() {
    T value{};
    take(&value, sizeof value);
    return value;
  }
  bool flag() {
    const auto byte = get<uint8_t>();
    expect(byte <= 1);
    return byte == 1;
  }
  // One of those from zero to the last.
  template <typename T>
    requires std::is_enum_v<T>
  T up_to(T last) {
    using Number = std::underlying_type_t<T>;
    const auto number = get<Number>();
    const bool is_known = number >= Number{} && number <= static_cast<Number>(last);
    expect(is_known);
    return is_known ? static_cast<T>(number) : T{};
  }
  std::string text(size_t most = SIZE_MAX) {
    const size_t bytes = count(1);
    expect(bytes <= most);
    std::string text(is_good_ ? bytes : 0, '\0');
    take(text.data(), text.size());
    return text;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> values(count(sizeof(int64_t)));
    take(values.data(), values.size() * sizeof(int64_t));
    return values;
  }
  // How many follow, each of at least so many bytes: never more than there are bytes for.
  uint32_t count(size_t bytes_each) {
    const auto count = get<uint32_t>();
    expect(count <= left_.size() / bytes_each);
    return is_good_ ? count : 0;
  }
  // What was read makes sense only if this is true.
  void expect(bool is_true) {
    is_good_ = is_good_ && is_true;
    if (!is_good_) left_ = {};
  }

  bool at_end() const { return left_.empty(); }
  bool is_good() const { return is_good_; }
  // All of it was read, and makes sense.
  bool is_complete() const { return is_good_ && at_end(); }

 private:
  void take(void* to, size_t bytes) {
    expect(bytes <= left_.size());
    if (!is_good_ || bytes == 0) return;
    std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }

  std::span<const std::byte> left_;
  bool is_good_ = true;
};

}  // namespace rdmacoll
