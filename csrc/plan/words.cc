// Words. Floor: plan.
#include "csrc/plan/words.h"

#include <algorithm>
#include <charconv>

namespace rdmacoll {
namespace {

constexpr size_t kShownBytes = 40;
constexpr std::string_view kBlanks = " \t\r";

}  // namespace

std::string quoted(std::string_view word) {
  std::string shown(word.substr(0, kShownBytes));
  for (char& c : shown) c = c >= ' ' && c <= '~' ? c : '?';
  return "'" + shown + (word.size() > kShownBytes ? "...'" : "'");
}

std::vector<std::string_view> split_words(std::string_view row) {
  std::vector<std::string_view> words;
  for (size_t first; (first = row.find_first_not_of(kBlanks)) != row.npos;) {
    row.remove_prefix(first);
    const size_t end = std::min(row.find_first_of(kBlanks), row.size());
    words.push_back(row.substr(0, end));
    row.remove_prefix(end);
  }
  return words;
}

std::optional<uint64_t> whole_number(std::string_view digits) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<std::string_view> value_of(std::string_view name, std::string_view word) {
  if (!word.starts_with(name)) return std::nullopt;
  return word.substr(name.size());
}

}  // namespace rdmacoll
