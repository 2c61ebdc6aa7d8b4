// OpenDraft: a file that programs write to through the mount: its draft, and the name that it is to
// have. It is stored when it is closed, or synchronised, and seen by others from then on.
// Floor: fuse_ext. Thread: any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "csrc/files/draft.h"
#include "fuse_ext/names.h"

namespace rdmacoll::fuse {

// What drafts share. It outlives them.
class DraftHost {
 public:
  DraftHost(files::Tables& tables, Names& names)
      : tables_(tables), blocks_(tables), names_(names) {}
  files::Draft::Host host();
  Names& names() { return names_; }
  // This process has stood still, and was taken for dead: its numbers are nobody's any more.
  void forget_new_tables();

 private:
  Result<uint32_t> new_table();

  files::Tables& tables_;
  files::Blocks blocks_;
  Names& names_;
  std::mutex mutex_;
  std::vector<uint32_t> new_tables_;
};

class OpenDraft {
 public:
  // before: what has the name, which this process holds from now on. appends: what is written is
  // put behind what the file has when it is stored. Throws a Problem, as all below.
  OpenDraft(DraftHost& host, Place place, Entry before, bool appends);
  // What was not stored is lost.
  ~OpenDraft();
  OpenDraft(const OpenDraft&) = delete;
  OpenDraft& operator=(const OpenDraft&) = delete;

  uint64_t read(uint64_t first, std::span<std::byte> out);
  // accepted: is called once, when nothing can fail any more; later operations wait for the rest.
  void write(uint64_t first, std::span<const std::byte> data,
             const std::function<void()>& accepted);
  void resize(uint64_t bytes);
  // nullopt: they stay.
  void change(std::optional<int64_t> modified_ns, std::optional<uint32_t> mode);
  // Nobody else has seen what is returned, but for what was stored.
  Entry seen();
  uint64_t bytes();
  // Servers have all, and the name has it. Returns that version.
  Entry store();

  Place place();
  void move(const Place& to);
  // The name is another file's, or nobody's: nothing is stored any more.
  void remove();

 private:
  // act: returns a Status. It is done again where servers had no room, and have some by now, or
  // where they have dropped the tables that it was to write.
  template <typename Act>
  void with_room(Act act);
  void free_unused();

  DraftHost& host_;
  std::mutex mutex_;  // what follows
  Place place_;
  Entry entry_;  // that has the name, as far as is known
  const Hold hold_;
  const bool appends_;
  bool is_removed_ = false;
  bool is_changed_ = false;  // other than in its bytes
  std::optional<files::Draft> draft_;
};

}  // namespace rdmacoll::fuse
