// Draft: a version of a file that is being written. It begins as the version before, and takes each
// part into memory that is changed; servers get them when they are full, or when the draft is
// stored. Nobody else sees any of it: who stored it gives the file its new parts.
// Floor: files. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "csrc/files/memory.h"
#include "csrc/files/tables.h"

namespace rdmacoll::files {

class Draft {
 public:
  struct Host {
    Tables& tables;
    Blocks& blocks;
    // The number of a table that nobody has.
    std::function<Result<uint32_t>()> new_table;
  };
  // before: the version that it begins with.
  Draft(Host host, const Parts& before);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  uint64_t bytes() const { return bytes_; }
  // How many bytes there were; fewer than wanted at the end. out: as of files::read().
  Result<uint64_t> read(uint64_t first, std::span<std::byte> out);
  // What is between the end and `first` is a hole. After a failure some of it may be there.
  Status write(uint64_t first, std::span<const std::byte> data);
  Status resize(uint64_t bytes);
  // Whether write() of so many bytes cannot fail, as they go to memory that is there.
  bool takes(uint64_t first, uint64_t bytes) const;

  bool is_changed() const { return is_changed_; }
  // Ok: servers have all of it. After a failure it can be stored again.
  Status store();
  // Once it is stored.
  Parts parts() const;
  // Those behind the version that it began with, if that is at its beginning, unchanged.
  std::optional<Parts> added() const;
  // Of these parts the tables that it has made, and that are not published.
  std::vector<uint32_t> new_tables() const;
  // The file has these parts now; they are what the draft begins with from now on.
  void publish(const Parts& parts);
  // Tables of its own that are no part of it any more.
  std::vector<uint32_t> take_unused();

 private:
  // Bytes one after the other: of a part that servers have or are to have, or in memory.
  struct Chunk {
    uint64_t bytes = 0;
    std::optional<Part> part{};  // nullopt: it is in memory alone
    std::shared_ptr<Memory> memory{};
    std::shared_ptr<Writing> writing{};  // of the part, from memory
    uint64_t used = 0;                   // the last one has the highest number
  };
  struct Found {
    size_t chunk = 0;
    uint64_t at = 0;  // in it
  };
  Found find(uint64_t first) const;
  // Whether bytes at the end go to the last chunk.
  bool has_open_tail() const;
  // The chunk that they go to.
  Result<size_t> tail();
  void split_hole(Found found);
  // So that it can be changed.
  Status to_memory(size_t index);
  // Few chunks are in memory at a time.
  Status make_room();
  Status begin(Chunk& chunk);
  static Status end(Chunk& chunk);
  void change_from(size_t index);

  const Host host_;
  std::vector<Chunk> chunks_;
  uint64_t bytes_ = 0;
  bool is_changed_ = false;
  size_t kept_ = 0;    // chunks that are those of the version before
  size_t before_ = 0;  // how many that had
  std::set<uint32_t> own_;
  uint64_t uses_ = 0;
};

}  // namespace rdmacoll::files
