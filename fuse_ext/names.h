// Names: which files there are, as rdmacoll/mount/names.py knows it. All that is kept of names is
// in the job's Store, so a call takes some hundred microseconds.
// Floor: fuse_ext. Thread: any, without the GIL, which each call takes.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/files/part.h"

namespace rdmacoll::fuse {

// A name in a folder, which has a number.
struct Place {
  uint64_t folder = 0;
  std::string name{};
  bool operator==(const Place&) const = default;
};

// Of what nobody writes, as the job's tables.
struct Fixed {
  std::string head{};  // what is read in the place of the first bytes of its parts
  std::vector<std::pair<std::string, std::string>> attributes{};  // extended ones
  bool operator==(const Fixed&) const = default;
};

struct Entry {
  bool is_folder = false;
  uint64_t folder = 0;  // its own number
  int64_t modified_ns = 0;
  uint32_t mode = 0;  // permissions
  files::Parts parts{};
  std::optional<Fixed> fixed{};
  bool operator==(const Entry&) const = default;
};

// What each process that uses a version of a file holds, so that it is not freed.
using Hold = int64_t;

// Each throws a Problem.
class Names {
 public:
  explicit Names(pybind11::object names) : names_(std::move(names)) {}
  ~Names();

  std::optional<Entry> find(const Place& place);
  std::vector<std::pair<std::string, Entry>> list(uint64_t folder);
  // ESTALE: another version has the name.
  Hold hold(const Place& place, const Entry& entry);
  void release(Hold hold);
  using Tables = std::vector<uint32_t>;
  Tables new_tables();
  void free(const Tables& tables);
  // A file without bytes. only_new: EEXIST where there is one; else it may be that one.
  Entry create(const Place& place, uint32_t mode, bool only_new);
  // The name has this version from now on. new_tables: of its parts those that this process has
  // made. hold: of the version that it began with; of this one then. ESTALE: this process has stood
  // still for so long that they may be no more.
  void put(const Place& place, const Entry& entry, const Tables& new_tables, Hold hold);
  // Behind what the file has by then; all of it.
  Entry append(const Place& place, const Entry& added, const Tables& new_tables, Hold hold);
  // Times and permissions, of a folder permissions. ESTALE: another version has the name.
  void change(const Place& place, const Entry& known, const Entry& wanted);
  // Of a folder: when a name in it has come or gone last, or what was set; 0: neither was.
  int64_t changed_ns(uint64_t folder);
  void set_changed_ns(uint64_t folder, int64_t changed_ns);
  Entry make_folder(const Place& place, uint32_t mode);
  void remove_file(const Place& place);
  void remove_folder(const Place& place);
  void move(const Place& from, const Place& to, bool only_new);
  // Whether servers have freed something since.
  bool wait_for_room();
  struct Space {
    uint64_t bytes = 0;
    uint64_t free_bytes = 0;
  };
  Space space();

 private:
  template <typename Result, typename... Arguments>
  Result call(const char* name, const Arguments&... arguments);

  pybind11::object names_;
};

}  // namespace rdmacoll::fuse
