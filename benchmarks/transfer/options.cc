// Floor: benchmarks. Thread: the parent's.
#include "benchmarks/transfer/options.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>
#include <string_view>

#include "benchmarks/transfer/child.h"

namespace rdmacoll::bench {
namespace {

template <typename Number>
bool read(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read(std::string_view text, Host* host) {
  const size_t slash = text.find('/');
  if (slash == text.npos || !read(text.substr(0, slash), &host->holder)) return false;
  host->address = text.substr(slash + 1);
  return host->holder > 0 && !host->address.empty();
}

bool read(std::span<char*> words, Options* options) {
  if (words.size() >= 3 && words[0] == std::string_view("between")) {
    if (!read(words[1], &options->hosts[0]) || !read(words[2], &options->hosts[1])) return false;
    words = words.subspan(3);
  }
  options->reads = !words.empty() && words[0] == std::string_view("reads");
  if (options->reads) words = words.subspan(1);
  if (words.empty()) return true;
  if (!read(words[0], &options->rounds) || options->rounds < 1) return false;
  return std::ranges::all_of(words.subspan(1), [&](const char* word) {
    uint64_t& bytes = options->sizes_bytes.emplace_back();
    return read(word, &bytes) && bytes >= 1 && bytes <= kMostBytes;
  });
}

}  // namespace

std::optional<Options> Options::of(int argc, char** argv) {
  Options options;
  if (!read(std::span(argv + 1, argv + argc), &options)) {
    std::fprintf(stderr,
                 "usage: %s [between PID/ADDRESS PID/ADDRESS] [reads] "
                 "[rounds, 1 or more [bytes, 1 to %llu ...]]\n",
                 argv[0], static_cast<unsigned long long>(kMostBytes));
    return std::nullopt;
  }
  if (options.sizes_bytes.empty()) {
    for (uint64_t bytes = 1 << 10; bytes <= 64u << 20; bytes *= 4) {
      options.sizes_bytes.push_back(bytes);
    }
  }
  return options;
}

}  // namespace rdmacoll::bench
