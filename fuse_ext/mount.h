// Mount: files of a job in a folder of this machine. operations.cc has what is done for names,
// file_operations.cc for bytes. Floor: fuse_ext. Thread: any, without the GIL.
#pragma once

#include <pthread.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fuse_ext/libfuse.h"
#include "fuse_ext/names.h"
#include "fuse_ext/nodes.h"
#include "fuse_ext/open_draft.h"

namespace rdmacoll::fuse {

class Mount {
 public:
  // names: see Names. Throws std::runtime_error where there is no libfuse3.
  Mount(std::shared_ptr<files::Tables> tables, pybind11::object names);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  // Throws std::runtime_error where the kernel, or who may mount, refuses; libfuse has said why.
  // name: of the mount, for /proc/mounts.
  void start(const std::string& folder, const std::string& name);
  // Somebody has unmounted it.
  bool has_ended() const { return running_ == 0; }
  // Unmounts it. What is open for writing is stored, and each further use of it is an error.
  void stop();

  files::Tables& tables() { return *tables_; }
  Names& names() { return names_; }
  Nodes& nodes() { return nodes_; }
  DraftHost& drafts() { return drafts_; }
  // Why operations on a name have failed last, for people; empty: they have not.
  std::string error_of(const Place& place);
  void note_error(const Place& place, const std::string& why);

 private:
  void run();
  void run_one_more();
  void store_all();

  const std::shared_ptr<files::Tables> tables_;
  Names names_;
  Nodes nodes_;
  DraftHost drafts_;
  const LibFuse& fuse_;
  fuse_session* session_ = nullptr;
  std::atomic<int> running_{0};
  std::atomic<int> idle_{0};
  std::mutex mutex_;  // what follows
  std::vector<std::thread> threads_;
  std::map<std::pair<uint64_t, std::string>, std::string> errors_;
};

}  // namespace rdmacoll::fuse
