// Settings: the only place that reads the environment. Floor: base.
#include "csrc/base/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace rdmacoll {
namespace {

bool is_ours(std::string_view name) {
  return name.starts_with("RDMACOLL_") || name == "LOCAL_RANK" || name == "LOCAL_WORLD_SIZE" ||
         name == "RANK";
}

}  // namespace

Status bad_value(const std::string& name, const std::string& value, const std::string& allowed) {
  return Status(StatusCode::InvalidArgument,
                name + "='" + value + "' is not valid; use " + allowed + " or unset it");
}

Status check_choice(const std::string& setting, const std::string& value,
                    const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& choice : allowed) {
    if (value == choice) return Status();
    list += (list.empty() ? "" : ", ") + choice;
  }
  return bad_value(setting, value, (allowed.size() > 1 ? "one of " : "") + list);
}

Settings Settings::from_environment() {
  Settings settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view both = *entry;
    const size_t equals = both.find('=');
    if (equals == std::string_view::npos || !is_ours(both.substr(0, equals))) continue;
    settings.set(std::string(both.substr(0, equals)), std::string(both.substr(equals + 1)));
  }
  return settings;
}

std::vector<std::string> Settings::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : values_) all.push_back(name);
  return all;
}

const std::string* Settings::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Settings::read_text(const std::string& name, std::string* out) const {
  const std::string* value = find(name);
  if (value != nullptr && !value->empty()) *out = *value;
}

Status Settings::read_choice(const std::string& name, const std::vector<std::string>& allowed,
                             std::string* out) const {
  const std::string* value = find(name);
  if (value == nullptr || value->empty()) return Status();
  RDMACOLL_RETURN_IF_ERROR(check_choice(name, *value, allowed));
  *out = *value;
  return Status();
}

Status Settings::read_integer(const std::string& name, int64_t least, int64_t most, int64_t* out,
                              const char* why) const {
  const std::string* value = find(name);
  if (value == nullptr || value->empty()) return Status();
  char* end = nullptr;
  const long long parsed = std::strtoll(value->c_str(), &end, 10);
  if (*end != '\0' || parsed < least || parsed > most) {
    return bad_value(
        name, *value,
        "an integer from " + std::to_string(least) + " to " + std::to_string(most) + why);
  }
  *out = parsed;
  return Status();
}

}  // namespace rdmacoll
