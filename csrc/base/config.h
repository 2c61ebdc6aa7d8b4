// Config: every setting a user can make from the environment, read once. The only getenv() of the
// engine is in config.cc. Settings that all ranks must share are hashed into the card.
// Floor: base. Thread: a value.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

enum class LogLevel { Error, Warn, Info, Debug };

struct Config {
  // RDMACOLL_LOG: error | warn | info | debug.
  LogLevel log_level = LogLevel::Warn;
  // RDMACOLL_HOST_ID: ranks with the same value are on one host; empty: the kernel's boot id.
  std::string host_id;
  // RDMACOLL_TRANSPORT: auto | shm. What carries the data to every peer.
  std::string transport = "auto";
  // RDMACOLL_ALGO: auto | ring | tree | halving_doubling | one_shot | two_shot. Must be the same on
  // all ranks. An operation that the named algorithm does not exist for keeps its own choice.
  std::string algorithm = "auto";
  // RDMACOLL_BLOCK_BYTES: bytes of slots per channel of one communicator. Same on all ranks.
  uint64_t block_bytes = 8u << 20;
  // RDMACOLL_CONNECT_TIMEOUT_MS: longest time to reach a peer when a group is made.
  int64_t connect_timeout_ms = 60'000;
  // RDMACOLL_SPIN_US: how long a wait polls before it yields; -1: by cores and local ranks.
  int64_t spin_us = -1;

  // Reads the environment. InvalidArgument names the variable, its value and what is allowed.
  static Result<Config> from_environment();

  // Hash of what must be equal on all ranks.
  uint64_t agreement_hash() const;
};

}  // namespace rdmacoll
