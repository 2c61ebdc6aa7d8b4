// RemoteFace: remote memory for Python, as rdmacoll/remote is made of it: tensors in the place of
// addresses, and works that keep them.
// Floor: torch_ext/remote. Thread: any, with the GIL, which what waits gives up.
#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/remote/publication.h"
#include "csrc/remote/remote.h"
#include "torch_ext/backend/backend.h"

namespace rdmacoll::torch_ext {

class RemoteFace;
class RemoteOpened;
using RemoteFacePtr = std::shared_ptr<RemoteFace>;

// Bytes as a tensor, which holds what keeps them.
at::Tensor bytes_at(std::byte* data, uint64_t bytes, std::shared_ptr<void> keeps);

// What a work uses until it has ended: what was open may not be closed, nor the tensor freed.
struct UsedByWork {
  std::shared_ptr<const RemoteOpened> opened{};
  at::Tensor tensor{};
};

// By when a read or a write is to have ended. What a device or a peer is at the engine does not end
// (session.cc): then the wait for it ends alone.
struct TransferLimit {
  TransferLimit(std::string what, const OpenedPtr& opened, int64_t timeout_ms);
  // Of a wait. The engine has the first word: it may know better why.
  int64_t left_ms() const;
  // That it goes on.
  Status passed() const;

  const std::string what;  // for people
  const std::string who;   // likewise
  const int64_t timeout_ms;
  const Deadline deadline;
};

// A read, a write or a wait in flight. If Python lets go of it before it has ended, the face keeps
// what it uses.
class RemoteWork {
 public:
  // limit: of a transfer.
  RemoteWork(RemoteFacePtr face, WorkPtr work, UsedByWork used,
             std::optional<TransferLimit> limit = std::nullopt,
             std::shared_ptr<uint64_t> result = nullptr)
      : face_(std::move(face)),
        work_(std::move(work)),
        used_(std::move(used)),
        limit_(std::move(limit)),
        result_(std::move(result)) {}
  ~RemoteWork();
  RemoteWork(const RemoteWork&) = delete;
  RemoteWork& operator=(const RemoteWork&) = delete;

  bool done() const { return work_->done(); }
  // Raises what it ended with, or that it did not in time. timeout_s < 0: its own.
  void wait(double timeout_s);
  // Of one that has ended well: of a snapshot the version, 0: there was no newer one; of an update
  // what was there before.
  uint64_t result() const { return result_ != nullptr ? *result_ : 0; }

 private:
  const RemoteFacePtr face_;
  const WorkPtr work_;
  UsedByWork used_;
  const std::optional<TransferLimit> limit_;
  const std::shared_ptr<uint64_t> result_;
};

using FromToBytes = std::tuple<uint64_t, uint64_t, uint64_t>;

// Closed when neither Python nor a work holds it.
class RemoteOpened : public std::enable_shared_from_this<RemoteOpened> {
 public:
  RemoteOpened(RemoteFacePtr face, OpenedPtr opened)
      : face_(std::move(face)), opened_(std::move(opened)) {}
  ~RemoteOpened();
  RemoteOpened(const RemoteOpened&) = delete;
  RemoteOpened& operator=(const RemoteOpened&) = delete;

  const ExposureInfo& info() const { return opened_->info; }
  // offset: in bytes; the tensors are dense.
  std::unique_ptr<RemoteWork> read(uint64_t offset, const at::Tensor& out, double timeout_s) const;
  std::unique_ptr<RemoteWork> write(uint64_t offset, const at::Tensor& data, uint64_t notify,
                                    double timeout_s) const;
  // Rows of so many bytes each, of what begins at the offset: contiguous int64, all of them there.
  std::unique_ptr<RemoteWork> read_rows(uint64_t offset, uint64_t row_bytes, const at::Tensor& rows,
                                        const at::Tensor& out, double timeout_s) const;
  // The same. Of a row that comes more than once, the last of its values is written.
  std::unique_ptr<RemoteWork> write_rows(uint64_t offset, uint64_t row_bytes,
                                         const at::Tensor& rows, const at::Tensor& values,
                                         uint64_t notify, double timeout_s) const;
  // parts: bytes of a version, to bytes of `out`.
  std::unique_ptr<RemoteWork> snapshot(const at::Tensor& out, const std::vector<FromToBytes>& parts,
                                       uint64_t newer_than, double timeout_s) const;
  std::unique_ptr<RemoteWork> update(uint64_t offset, const Update& update, double timeout_s) const;
  std::unique_ptr<RemoteWork> fence(double timeout_s) const;

 private:
  const RemoteFacePtr face_;
  const OpenedPtr opened_;
};

// The versions of one exposure.
class RemotePublication {
 public:
  explicit RemotePublication(Publication publication) : publication_(std::move(publication)) {}
  uint64_t version() const { return publication_.version(); }
  // Where the next version is to be written, as bytes.
  at::Tensor begin();
  uint64_t complete() { return publication_.complete(); }

 private:
  Publication publication_;
};

class RemoteFace : public std::enable_shared_from_this<RemoteFace> {
 public:
  // One for all groups that stand on the same endpoint (endpoint_of).
  static RemoteFacePtr make(const RdmaBackend& backend);
  // The one that was made; nullptr: none was, so no memory of this process is remote.
  static RemoteFacePtr known(const RdmaBackend& backend);
  explicit RemoteFace(const RdmaBackend& backend);
  // What tells endpoints apart.
  static uint64_t endpoint_of(const RdmaBackend& backend);

  // Throws in a forked child: the engine's threads and locks are its parent's.
  Remote& remote() const;
  bool inherited() const;
  // Until the work has ended, which uses it. It is freed in a thread of Python's, never in one of
  // the engine's: with it may end what that thread stands on.
  void keep(WorkPtr work, UsedByWork used);
  void free_unused();

  // A tensor of bytes in memory of its own.
  at::Tensor allocate(uint64_t bytes, bool writable);
  bool holds(const at::Tensor& tensor) const;
  void expose(const std::string& name, const at::Tensor& tensor, bool writable,
              const std::string& meta);
  std::unique_ptr<RemotePublication> publish(const std::string& name, uint64_t bytes,
                                             const std::string& meta);
  uint64_t notified(const std::string& name) const;
  std::unique_ptr<RemoteWork> wait_notified(const std::string& name, uint64_t at_least,
                                            double timeout_s);
  // Who was cut off.
  std::vector<std::string> revoke(const std::string& name, double timeout_s);
  void lend(uint64_t bytes) const { remote().lend(bytes); }
  void open_mailbox(const std::string& name) const;
  void close_mailbox(const std::string& name) const;
  std::shared_ptr<RemoteOpened> take(const std::string& name, double timeout_s);
  std::map<std::string, uint64_t> stats() const;
  std::shared_ptr<RemoteOpened> open(const std::string& address, const std::string& who,
                                     const std::string& name, double timeout_s);
  std::shared_ptr<RemoteOpened> allocate_there(const std::string& address, const std::string& who,
                                               uint64_t bytes, double timeout_s);
  // The tensor is in remote memory, and stays as it is until the work has ended.
  std::unique_ptr<RemoteWork> post(const std::string& address, const std::string& who,
                                   const std::string& name, const at::Tensor& tensor,
                                   const std::string& meta, double timeout_s);

 private:
  const uint64_t forks_;                              // ProcessLife::forks() when it was made
  std::vector<std::pair<WorkPtr, UsedByWork>> kept_;  // outlives the engine below, which ends works
  std::unique_ptr<Remote> remote_;
};

void bind_remote(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
