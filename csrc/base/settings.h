// Settings: the environment's variables that are meant for rdmacoll, read once. Each is checked
// where what it sets is defined: the engine's own by Config, a transport's in its folder. Floor:
// base. Thread: a value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace rdmacoll {

// Ok, or that the setting of this name must have another value.
Status check_choice(const std::string& setting, const std::string& value,
                    const std::vector<std::string>& allowed);
Status bad_value(const std::string& name, const std::string& value, const std::string& allowed);

class Settings {
 public:
  // Those that begin with RDMACOLL_, and the launcher's LOCAL_RANK, LOCAL_WORLD_SIZE and RANK.
  static Settings from_environment();

  void set(const std::string& name, const std::string& value) { values_[name] = value; }
  std::vector<std::string> names() const;
  // nullptr: it is not set.
  const std::string* find(const std::string& name) const;

  // Each leaves `out` as it is where the setting is not set or empty.
  void read_text(const std::string& name, std::string* out) const;
  Status read_choice(const std::string& name, const std::vector<std::string>& allowed,
                     std::string* out) const;
  // why: behind the bounds, in the error.
  Status read_integer(const std::string& name, int64_t least, int64_t most, int64_t* out,
                      const char* why = "") const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace rdmacoll
