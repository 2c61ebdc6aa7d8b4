// file_draft: a version of a file that Python writes (csrc/files/draft.h).
// Floor: torch_ext/ps. Thread: any, with the GIL, which what waits gives up.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/files/draft.h"
#include "torch_ext/ps/file_tables.h"

namespace rdmacoll::torch_ext {

// What the drafts of a process share.
class FileDrafts {
 public:
  FileDrafts(PsClientPtr client, double timeout_s)
      : client(std::move(client)), timeout_s(timeout_s) {}

  const PsClientPtr client;
  const double timeout_s;  // of each wait
  const std::shared_ptr<files::Tables> tables = file_tables(client, timeout_s);
  files::Blocks blocks{*tables};
};

class FileDraft {
 public:
  using Parts = std::vector<std::pair<uint32_t, uint64_t>>;  // (table, bytes)

  // parts: that it begins with. new_table: returns a table's number.
  FileDraft(std::shared_ptr<FileDrafts> drafts, const Parts& parts, pybind11::function new_table);
  ~FileDraft();
  FileDraft(const FileDraft&) = delete;
  FileDraft& operator=(const FileDraft&) = delete;

  uint64_t size() const;
  // How many bytes there were. out, data: of bytes, one behind the other.
  uint64_t read(uint64_t first, const pybind11::buffer& out);
  void write(uint64_t first, const pybind11::buffer& data);
  void resize(uint64_t bytes);
  bool is_changed() const;
  void store();
  Parts parts() const;
  std::optional<Parts> added() const;
  std::vector<uint32_t> new_tables() const;
  void publish(const Parts& parts);
  std::vector<uint32_t> take_unused();

 private:
  Result<uint32_t> new_table();
  // act: with the draft, without the GIL. Raises what new_table() has raised meanwhile.
  template <typename Act>
  auto wait_for(Act act);
  template <typename Act>
  auto look(Act act) const;

  const std::shared_ptr<FileDrafts> drafts_;
  const pybind11::function new_table_;
  mutable std::mutex mutex_;   // what follows; it is taken without the GIL
  InterruptCheck interrupt_;   // of the operation that is under way
  std::exception_ptr raised_;  // by new_table(), in it
  const std::shared_ptr<files::Tables> tables_;
  files::Blocks blocks_;
  std::unique_ptr<files::Draft> draft_;
};

void bind_file_draft(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
