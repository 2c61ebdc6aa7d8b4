// Connection: records to and from one other process, each way in order, as workers and servers see
// it. RingConnection is the product's; tests put their own in its place. Floor: ps/wire. Thread:
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/base/status.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/record.h"

namespace rdmacoll::ps {

// The most that a body may have: the values of a shard, or as many bytes of rows and their ids.
inline constexpr uint64_t kMostBodyBytes = kShardElements * sizeof(float) + 64 * 1024;

struct Record {
  RecordHead head;
  std::span<const std::byte> body;  // until it is given back
  uint64_t end = 0;                 // the connection's
};

// Of why something failed, as its body says.
inline constexpr uint64_t kMostReasonBytes = 512;

class Connection {
 public:
  virtual ~Connection() = default;

  // Ok, or why nothing comes and goes any more: the other has ended, or said what makes no sense.
  virtual Status failure() const = 0;
  // Whether the other is a process of this host, as far as is known.
  virtual bool is_near() const { return false; }
  // The next record that has come, to be given back once; false: none has.
  virtual bool take(Record& record) = 0;
  // Its body may be written over. In any order.
  virtual void give_back(const Record& record) = 0;
  // Room for a record with such a body, which is to be written there and then sent; nullptr: the
  // other has not read enough yet.
  virtual std::byte* room(uint64_t body_bytes) = 0;
  // It is used no more: failure() says so from now on.
  virtual void leave() = 0;
  // The record for which there was room last; its number, of those that this process has sent.
  virtual uint64_t send(const RecordHead& head) = 0;
  // Records from this number on are not written over, though the other has given them back: they
  // may have to be sent to somebody else. UINT64_MAX: all may be.
  virtual void keep(uint64_t from) = 0;
};

}  // namespace rdmacoll::ps
