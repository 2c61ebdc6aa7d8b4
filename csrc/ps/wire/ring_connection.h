// RingConnection: a connection of two rings of memory. Each process has one, which the other
// writes: a record, then a notification of how far it has written; nobody answers that. The reader
// says in its own records how far it has read. Where the other's memory is mapped, a record is
// written right there. Floor: ps/wire. Thread: one; what makes it, any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/ring_bytes.h"
#include "csrc/remote/remote.h"

namespace rdmacoll::ps {

class RingConnection final : public Connection {
 public:
  // This process's side, which the other has not opened yet. name: of the ring, in all the process.
  static Result<std::unique_ptr<RingConnection>> make(Remote& remote, const std::string& name);
  ~RingConnection() override;

  // Opens the ring of the process of an address, of this name there. Then the connection can be
  // used.
  Status open(const std::string& address, const std::string& who, const std::string& ring,
              int64_t timeout_ms, const InterruptCheck& interrupt);

  // Any thread.
  Status failure() const override;
  bool take(Record& record) override;
  void give_back(const Record& record) override;
  std::byte* room(uint64_t body_bytes) override;
  uint64_t send(const RecordHead& head) override;
  void keep(uint64_t from) override { kept_from_ = from; }
  void leave() override { fail("has left"); }
  // Whether something has come that is not taken yet, or nothing comes any more. Any thread.
  bool has_news() const;
  // Then the other's memory is mapped here, as this process's is there.
  bool is_near() const override { return stage_ == nullptr; }
  // Whether the other's memory is read without its processor.
  bool is_read_alone() const { return theirs_->is_read_alone(); }

 private:
  struct Taken {
    uint64_t end = 0;
    bool is_given_back = false;
  };
  RingConnection(Remote& remote, std::string name, RemoteMemoryPtr ring);
  std::byte* at(uint64_t position) const;
  // The other is sent so many bytes, which stand for so many in its ring.
  void publish(uint64_t bytes, uint64_t as_bytes);
  void fail(const std::string& why);

  Remote& remote_;
  const std::string name_;
  const RemoteMemoryPtr ring_;
  std::shared_ptr<const Exposure> exposed_;
  OpenedPtr theirs_;
  std::shared_ptr<Opened::Use> use_;
  RemoteMemoryPtr stage_;  // what is written, on its way; nullptr: the other's ring is mapped
  Status failed_;          // set before has_failed_, once
  std::atomic<bool> has_failed_{false};

  std::atomic<uint64_t> read_{0};  // bytes
  uint64_t freed_ = 0;             // of them
  std::deque<Taken> taken_;
  uint64_t written_ = 0;  // bytes
  uint64_t their_freed_ = 0;
  uint64_t kept_from_ = UINT64_MAX;
  std::deque<WorkPtr> writes_;  // that have not ended
};

}  // namespace rdmacoll::ps
