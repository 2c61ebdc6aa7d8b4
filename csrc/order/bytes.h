// ByteWriter and ByteReader: values one behind the other, in the byte order of all hosts that run
// rdmacoll (little). What is read comes from other processes: a reader that finds too little says
// so once, at the end. Floor: order. Thread: values.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rdmacoll {

using Bytes = std::vector<std::byte>;

template <typename T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class ByteWriter {
 public:
  explicit ByteWriter(Bytes& bytes) : bytes_(bytes) {}

  template <Plain T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  void put(const std::vector<int64_t>& values) {
    put(static_cast<uint32_t>(values.size()));
    append(values.data(), values.size() * sizeof(int64_t));
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

  template <Plain T>
  T get() {
    T value{};
    take(&value, sizeof value);
    return value;
  }
  std::string text() {
    std::string text(room_for(1), '\0');
    take(text.data(), text.size());
    return text;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> values(room_for(sizeof(int64_t)));
    take(values.data(), values.size() * sizeof(int64_t));
    return values;
  }
  // How many follow, each of at least so many bytes: never more than there are bytes for.
  uint32_t room_for(size_t bytes_each) {
    const auto count = get<uint32_t>();
    if (count <= left_.size() / bytes_each) return count;
    is_good_ = false;
    return 0;
  }

  bool at_end() const { return left_.empty() || !is_good_; }
  bool is_good() const { return is_good_; }

 private:
  void take(void* to, size_t bytes) {
    is_good_ = is_good_ && bytes <= left_.size();
    if (!is_good_ || bytes == 0) return;
    std::memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
  }

  std::span<const std::byte> left_;
  bool is_good_ = true;
};

}  // namespace rdmacoll
