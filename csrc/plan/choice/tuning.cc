// Tuning: parsing, with errors for the person who edits the table.
#include "csrc/plan/choice/tuning.h"

#include <algorithm>
#include <optional>
#include <string>

#include "csrc/base/limits.h"
#include "csrc/plan/choice/link_rows.h"
#include "csrc/plan/selection/select.h"
#include "csrc/plan/words.h"

namespace rdmacoll {
namespace {

constexpr std::string_view kMapped = "mapped";
constexpr std::string_view kUnmapped = "unmapped";
constexpr std::string_view kHosts = "hosts=";
constexpr size_t kWords = 5;

Status at_line(size_t line, const Status& status) {
  return Status(status.code(), "line " + std::to_string(line) + ": " + status.message());
}

// 16384, 16K, 4M, 1G or any.
std::optional<uint64_t> size_bytes(std::string_view text) {
  if (text == "any") return kAnyBytes;
  constexpr std::string_view kUnits = "KMG";
  const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  const uint32_t shift = unit == kUnits.npos ? 0 : 10 * (static_cast<uint32_t>(unit) + 1);
  const auto value = whole_number(text.substr(0, text.size() - (shift != 0)));
  if (!value || *value >= kAnyBytes >> shift) return std::nullopt;
  return *value << shift;
}

// Some have several algorithms only where there are two levels. A barrier has no sizes.
bool tunable(Collective collective) {
  static const Islands hosts = Islands::of_shape("2x2").take();
  return collective != Collective::Barrier && algorithms_of(collective, hosts).size() > 1;
}

std::string tunable_collectives() {
  std::string list;
  for (size_t index = 0; index < kCollectives; ++index) {
    const auto collective = static_cast<Collective>(index);
    if (!tunable(collective)) continue;
    list += (list.empty() ? "" : ", ") + std::string(collective_name(collective));
  }
  return list;
}

std::string group_name(Collective collective, const std::string& layout, uint32_t world) {
  return std::string(collective_name(collective)) + " " + layout +
         " world=" + std::to_string(world);
}

// The islands of a row's second and third word; an error says which is wrong.
Result<Islands> islands_of(std::string_view layout, std::string_view world_word) {
  const uint64_t world = whole_number(value_of("world=", world_word).value_or("")).value_or(0);
  if (world < 2 || world > kMaxWorld) {
    return wrong(quoted(world_word) +
                 " is not valid; give world=2 to world=" + std::to_string(kMaxWorld));
  }
  const auto ranks = static_cast<uint32_t>(world);
  if (layout == kMapped) return Islands::together(ranks);
  if (layout == kUnmapped) return Islands::apart(ranks);
  const auto shape = value_of(kHosts, layout);
  if (!shape) {
    return wrong(quoted(layout) +
                 " is no layout; give mapped (all peers share memory), unmapped (none do) or "
                 "hosts=2x4 (2 hosts of 4 ranks)");
  }
  auto islands = Islands::of_shape(*shape);
  if (!islands.ok()) return islands.status();
  if (islands.value().world() != ranks || !islands.value().has_levels()) {
    return wrong(quoted(layout) + " has " + std::to_string(islands.value().world()) + " ranks on " +
                 std::to_string(islands.value().count()) +
                 " host(s); give several hosts, one of them with several ranks, and as many as "
                 "world= says");
  }
  return islands;
}

std::string bound_name(uint64_t bytes) {
  return "up_to=" + (bytes == kAnyBytes ? "any" : std::to_string(bytes));
}

}  // namespace

std::string layout_name(const Islands& islands) {
  if (islands.has_levels()) return std::string(kHosts) + islands.shape();
  return std::string(islands.all_mapped() ? kMapped : kUnmapped);
}

Result<Tuning::Group> Tuning::parse_row(const std::vector<std::string_view>& words) {
  if (words.size() != kWords) {
    return wrong("there are " + std::to_string(words.size()) +
                 " words; a row is: collective mapped|unmapped|hosts=HxL world=N up_to=BYTES|any "
                 "algorithm, or: link network|memory COST=NUMBER...");
  }
  const auto collective = collective_by_name(words[0]);
  if (!collective || !tunable(*collective)) {
    return wrong(quoted(words[0]) + " is no collective that can be tuned; there are " +
                 tunable_collectives());
  }
  Result<Islands> found = islands_of(words[1], words[2]);
  if (!found.ok()) return found.status();
  const Islands islands = found.take();
  const std::string layout = layout_name(islands);
  const auto up_to = size_bytes(value_of("up_to=", words[3]).value_or(""));
  if (!up_to) {
    return wrong(quoted(words[3]) +
                 " is not valid; give bytes, as in up_to=16384 or up_to=16K, or up_to=any");
  }
  const uint32_t ranks = islands.world();
  const auto algorithm = algorithm_by_name(words[4]);
  if (!algorithm || !exists(*collective, *algorithm, islands)) {
    std::string list;
    for (const Algorithm other : algorithms_of(*collective, islands)) {
      list += (list.empty() ? "" : ", ") + std::string(algorithm_name(other));
    }
    return wrong(quoted(words[4]) + " is no algorithm of " +
                 group_name(*collective, layout, ranks) + "; there are " + list);
  }
  return Group{*collective, layout, ranks, {{*up_to, *algorithm}}, 0};
}

Status Tuning::add(Group row) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.collective == row.collective && group.layout == row.layout &&
           group.world == row.world;
  });
  if (found == groups_.end()) {
    groups_.push_back(std::move(row));
    return Status();
  }
  const uint64_t before = found->rows.back().up_to_bytes, now = row.rows.front().up_to_bytes;
  if (now <= before) {
    return wrong(bound_name(now) + " is not above " + bound_name(before) + " of line " +
                 std::to_string(found->last_line) + "; order the rows of " +
                 group_name(row.collective, row.layout, row.world) + " by size, each size once");
  }
  found->rows.push_back(row.rows.front());
  found->last_line = row.last_line;
  return Status();
}

Result<Tuning> Tuning::parse(std::string_view text) {
  Tuning tuning;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    row = row.substr(0, row.find('#'));
    const std::vector<std::string_view> words = split_words(row);
    if (words.empty()) continue;
    if (words.front() == kLink) {
      const Status read = read_link_row(words, &tuning.links_);
      if (!read.ok()) return at_line(line, read);
      continue;
    }
    auto parsed = parse_row(words);
    if (!parsed.ok()) return at_line(line, parsed.status());
    parsed.value().last_line = line;
    const Status added = tuning.add(parsed.take());
    if (!added.ok()) return at_line(line, added);
  }
  for (const Group& group : tuning.groups_) {
    const uint64_t last = group.rows.back().up_to_bytes;
    if (last == kAnyBytes) continue;
    return at_line(group.last_line,
                   wrong("the rows of " + group_name(group.collective, group.layout, group.world) +
                         " end at " + bound_name(last) + "; the last must say up_to=any"));
  }
  return tuning;
}

std::vector<TunedRow> Tuning::rows(Collective collective, const Islands& islands) const {
  const std::string layout = layout_name(islands);
  for (const Group& group : groups_) {
    if (group.collective == collective && group.layout == layout &&
        group.world == islands.world()) {
      return group.rows;
    }
  }
  return {};
}

}  // namespace rdmacoll
