// FailureReport. Floor: engine/failure.
#include "csrc/engine/failure/failure_report.h"

#include <algorithm>
#include <cstdio>

namespace rdmacoll {
namespace {

constexpr size_t kMaxLines = 16;  // an error is to be read

// Ascending ranks as "0-3, 5".
std::string ranges(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (last > i) text += (last > i + 1 ? "-" : ", ") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

std::string for_seconds(int64_t waited_ns) {
  char text[32];
  std::snprintf(text, sizeof(text), ", for %.1f s", static_cast<double>(waited_ns) / 1e9);
  return text;
}

}  // namespace

void FailureReport::add(uint32_t rank, const std::string& what, int64_t waited_ns) {
  auto same = std::find_if(entries_.begin(), entries_.end(),
                           [&](const Entry& entry) { return entry.what == what; });
  if (same == entries_.end()) same = entries_.insert(same, Entry{what, 0, {}});
  same->waited_ns = std::max(same->waited_ns, waited_ns);
  same->ranks.push_back(rank);
}

std::string FailureReport::text() const {
  std::string text;
  for (size_t i = 0; i < std::min(entries_.size(), kMaxLines); ++i) {
    const Entry& entry = entries_[i];
    text += std::string("\n  ") + (entry.ranks.size() > 1 ? "ranks " : "rank ") +
            ranges(entry.ranks) + ": " + entry.what;
    if (entry.waited_ns > 0) text += for_seconds(entry.waited_ns);
  }
  if (entries_.size() > kMaxLines) {
    text += "\n  and " + std::to_string(entries_.size() - kMaxLines) + " more";
  }
  return text;
}

}  // namespace rdmacoll
