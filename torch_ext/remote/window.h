// RdmaWindow: torch's window (c10d::Window, from torch 2.15 on) over remote memory: a tensor of
// each rank of a group, which the others write. For older ones it is bound here, under the
// same names (_C.new_window).
// Floor: torch_ext/remote. Thread: any; what is collective, in the same order on all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/remote/remote.h"
#include "torch_ext/backend/backend.h"
#include "torch_ext/base/compat.h"
#include "torch_ext/join/session.h"
#include "torch_ext/remote/remote_face.h"

namespace rdmacoll::torch_ext {

class RdmaWindow final : public WindowBase {
 public:
  using BackendRef = c10::intrusive_ptr<RdmaBackend>;
  using WorkRef = c10::intrusive_ptr<c10d::Work>;
  using Milliseconds = std::chrono::milliseconds;

  RdmaWindow(BackendRef backend, std::shared_ptr<Session> session);
  // Its memory is taken back, but nobody is waited for.
  ~RdmaWindow() override;

  // Collective. The tensor is in memory of remote.empty(access="rw"), and has the same dtype and
  // number of elements on all ranks. As others may write there until the window is deregistered, it
  // keeps the memory even if it does not own it.
  void tensor_register(const at::Tensor& tensor, bool owning) RDMACOLL_OVERRIDE_OF_WINDOW;
  // Collective: what others have put before is there, and nobody puts any more.
  void tensor_deregister() RDMACOLL_OVERRIDE_OF_WINDOW;

  // The work ends when the tensor may be changed again.
  WorkRef put(const at::Tensor& tensor, int64_t rank, int64_t offset_nelems, bool async,
              const PutOptions& opts) RDMACOLL_OVERRIDE_OF_WINDOW;
  // Waits until what this rank has put there before is on its way: so a rank that has waited for
  // the signal sees it.
  WorkRef signal(int64_t rank, bool async, const SignalOptions& opts) RDMACOLL_OVERRIDE_OF_WINDOW;
  // For one signal of this rank more than before.
  WorkRef wait_signal(int64_t rank, bool async,
                      const WaitSignalOptions& opts) RDMACOLL_OVERRIDE_OF_WINDOW;
  // Inside a host; throws for a rank of another one. It may outlive the window.
  at::Tensor map_remote_tensor(int64_t rank) RDMACOLL_OVERRIDE_OF_WINDOW;
  // UNIFIED inside a host, SEPARATE between hosts.
  WindowAttr get_attr(int64_t rank) RDMACOLL_OVERRIDE_OF_WINDOW;

 private:
  // Another rank, or this one itself.
  struct Peer {
    std::string exposed;  // the name of this rank's memory for it
    std::string name;     // of its memory for this rank
    OpenedPtr opened{};   // once something was done there
    std::vector<WorkPtr> puts{};
    uint64_t signals = 0;  // of this rank, there
    uint64_t awaited = 0;  // of its signals here
  };

  Peer& peer(const char* operation, int64_t rank);
  OpenedPtr open(const char* operation, int64_t rank);
  Status expose_to_all(const at::Tensor& tensor, RemoteMemory& memory, uint64_t id);
  void agree(const at::Tensor& tensor, const std::string& refused, uint64_t id);
  Status take_back(int64_t timeout_ms, const InterruptCheck& interrupt);
  void give_up();  // the same, but waits for nobody
  int64_t timeout_ms(Milliseconds asked) const;
  Status wait(Work& work, int64_t timeout_ms) const;
  WorkRef start(const char* title, Operands operands, WorkPtr part, bool async) const;

  const BackendRef backend_;
  const std::shared_ptr<Session> session_;
  std::mutex mutex_;    // what follows; not held in a wait
  RemoteFacePtr face_;  // once something was registered
  at::Tensor tensor_;   // what is registered
  std::vector<Peer> peers_;
};

void bind_window(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
