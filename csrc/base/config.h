// Config: the settings that a user can make from the environment, read once and checked. Those of a
// transport are in its folder, and stay as they were given in `settings`.
// Floor: base. Thread: a value.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/settings.h"
#include "csrc/base/status.h"

namespace rdmacoll {

enum class LogLevel { Error, Warn, Info, Debug };

// What a file that a setting names holds.
struct FileSetting {
  std::string path;  // as it was given
  std::string text;  // empty without one
};

// The job's secret, wherever it is from.
struct SecretSetting : FileSetting {
  // The ranks draw it in the store in which they meet: whoever reaches that knows it, and another
  // store has another.
  bool is_drawn = false;
};

// Where the launcher has put this process.
struct JobPlace {
  // LOCAL_RANK, as launchers set it: spreads the ranks of a host over its devices. What is no rank
  // counts as 0.
  int64_t local_rank = 0;
  // LOCAL_WORLD_SIZE, likewise: how many ranks of this host may have a heap to map. What is no
  // number counts as 0.
  int64_t local_world = 0;
  // RANK, likewise: how the flight recorder names this process. What is no rank counts as -1.
  int64_t rank = -1;
};

struct Config {
  // RDMACOLL_LOG: error | warn | info | debug.
  LogLevel log_level = LogLevel::Warn;
  // RDMACOLL_HOST_ID: ranks with the same value are on one host; empty: the kernel's boot id.
  std::string host_id;
  // RDMACOLL_TRANSPORT: auto, or the name of the one that carries the data to every peer
  // (engine/connect/transport_table.h). Same on all ranks.
  std::string transport = "auto";
  // RDMACOLL_REQUIRE: any way to a peer on another host but this transport is an error. Empty:
  // none.
  std::string require;
  // RDMACOLL_ALGO: auto, or the name of an algorithm (plan/selection/select.h). Must be the same on
  // all ranks. An operation that the named algorithm does not exist for keeps its own choice. A
  // group may have one of its own.
  std::string algorithm = "auto";
  // RDMACOLL_DETERMINISTIC: 0 | 1 | layout. 1: reductions fold in rank order, so that their bits
  // depend on nothing but what the ranks contribute. layout: they depend on which ranks share a
  // host as well, and several hosts send no more than they must. Same on all ranks.
  std::string deterministic = "0";
  // RDMACOLL_TUNING: a file that says which algorithm is taken when (plan/choice/tuning.h),
  // instead of the defaults. What is in it must be the same on all ranks.
  FileSetting tuning;
  // RDMACOLL_BLOCK_BYTES: bytes of slots per channel of one communicator. Same on all ranks.
  uint64_t block_bytes = 8u << 20;
  // RDMACOLL_HEAP_BYTES: how large the heap may get (engine/channel/heap.h); 0: there is none; -1:
  // half of the memory that the machine and the cgroup have, less under `ulimit -v`. It takes
  // memory only where it is used.
  int64_t heap_bytes = -1;
  // RDMACOLL_ZERO_COPY_LOCAL_BYTES, RDMACOLL_ZERO_COPY_REMOTE_BYTES: operations of so many bytes
  // and more do not copy what lies in the heap. Below, to ranks of this host, what is copied into
  // their reach stays in the caches; to others the copy costs less than waiting until it has been
  // sent.
  int64_t zero_copy_local_bytes = 8u << 20;
  int64_t zero_copy_remote_bytes = 32u << 10;
  // RDMACOLL_STORES: auto | cached | streamed. Whether what peers of this host read is written past
  // the caches; auto: for large operations, where it was quicker (engine/channel/store_choice.h).
  std::string stores = "auto";
  // RDMACOLL_CONNECT_TIMEOUT_MS: longest time to reach a peer once it is needed: when a group is
  // made, or with the first message to it.
  int64_t connect_timeout_ms = 60'000;
  // RDMACOLL_STALL_TIMEOUT_MS: how long a rank that others wait for may show no sign of running
  // (stopped, paused) before they give it up; 0: until the operation's own deadline. One that runs
  // and is late is given up at the deadline only.
  static constexpr int64_t kStallTimeoutMinMs = 5'000;
  int64_t stall_timeout_ms = 60'000;
  // RDMACOLL_SPIN_US: how long a wait polls before it yields; -1: by cores and local ranks.
  int64_t spin_us = -1;
  // RDMACOLL_FLIGHT_RECORDS: how many operations the flight recorder remembers; 0: there is none.
  int64_t flight_records = 1024;
  // RDMACOLL_DUMP_DIR: the folder where it is written when a group fails, or on SIGUSR2; empty: it
  // is not.
  std::string dump_dir;
  // RDMACOLL_SECRET_FILE: a file with the secret that all ranks of the job share, which only its
  // owner may read (secret_file.h). The text may be what the launcher has handed out instead, or
  // what the ranks have drawn; empty: the job has no secret, and whoever reaches the rendezvous can
  // join.
  SecretSetting secret;

  JobPlace place;
  // All as they were given.
  Settings settings;

  // Reads the environment. InvalidArgument names the variable, its value and what is allowed.
  // Names of transports and algorithms are checked by those who know them.
  static Result<Config> from_environment();

  // What of it must be equal on all ranks.
  std::string agreement() const;
};

}  // namespace rdmacoll
