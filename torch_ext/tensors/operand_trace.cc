// OperandTrace. Floor: torch_ext/tensors. Thread: any.
#include "torch_ext/tensors/operand_trace.h"

#include <algorithm>
#include <utility>

namespace rdmacoll::torch_ext {

// Weak: its address is not used again meanwhile, so it can be a key, but its memory may go.
struct OperandTrace::Watched {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  uint64_t bytes;
  uint64_t operations = 0;
};

namespace {

at::Tensor bytes_of(c10::Storage storage) {
  const auto bytes = static_cast<int64_t>(storage.nbytes());
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<uint8_t>());
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({bytes});
  return tensor;
}

}  // namespace

// Never destroyed: operations may end after the last static destructor.
OperandTrace& OperandTrace::instance() {
  static OperandTrace& trace = *new OperandTrace;
  return trace;
}

bool OperandTrace::start() { return !tracing_.exchange(true); }

void OperandTrace::stop() {
  tracing_.store(false);
  const std::lock_guard<std::mutex> lock(mutex_);
  watched_.clear();
}

OperandTrace::Use OperandTrace::use(const Operands& operands) {
  Use use;
  if (!tracing_.load(std::memory_order_relaxed)) [[likely]]
    return use;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const at::Tensor& tensor : operands.results()) watch(tensor, use);
  for (const at::Tensor& tensor : operands.read()) watch(tensor, use);
  return use;
}

void OperandTrace::watch(const at::Tensor& tensor, Use& use) {
  if (!tensor.has_storage() || tensor.storage().nbytes() == 0) return;
  const c10::Storage& storage = tensor.storage();
  std::shared_ptr<Watched>& watched = watched_[storage.unsafeGetStorageImpl()];
  if (!watched) watched.reset(new Watched{storage.getWeakStorageImpl(), storage.nbytes()});
  if (std::find(use.begin(), use.end(), watched) != use.end()) return;
  ++watched->operations;
  use.push_back(watched);
}

std::vector<OperandTrace::Met> OperandTrace::met() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Met> met;
  for (auto at = watched_.begin(); at != watched_.end();) {
    const Watched& watched = *at->second;
    c10::Storage storage(watched.storage.lock());
    const bool gone = !storage;
    met.push_back({reinterpret_cast<uintptr_t>(at->first),
                   gone ? at::Tensor() : bytes_of(std::move(storage)), watched.bytes,
                   watched.operations, at->second.use_count() > 1});
    at = gone ? watched_.erase(at) : std::next(at);
  }
  return met;
}

}  // namespace rdmacoll::torch_ext
