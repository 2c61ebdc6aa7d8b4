// Pins, and how many of them each storage has. Floor: torch_ext/tensors. Thread: any.
#include "torch_ext/tensors/pins.h"

#include <pthread.h>

#include <mutex>
#include <unordered_map>

namespace rdmacoll::torch_ext {
namespace {

// Storages that are not resizable only because operations on them are in flight, and how many are.
class Pinned {
 public:
  // Never destroyed: operations may end after the last static destructor.
  static Pinned& instance() {
    static Pinned& pinned = *new Pinned;
    return pinned;
  }

  void pin(c10::StorageImpl* storage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = operations_.find(storage);
    if (known != operations_.end()) {
      ++known->second;
    } else if (storage->resizable()) {
      storage->set_resizable(false);
      operations_.emplace(storage, 1);
    }
  }
  bool has(c10::StorageImpl* storage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return operations_.contains(storage);
  }
  void unpin(c10::StorageImpl* storage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = operations_.find(storage);
    if (known == operations_.end() || --known->second > 0) return;
    storage->set_resizable(true);
    operations_.erase(known);
  }

 private:
  Pinned() {
    // Locked across a fork, so that no other thread is in the middle of a change then.
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().forget(); });
  }
  // In a forked child nothing is in flight.
  void forget() {
    for (const auto& [storage, operations] : operations_) storage->set_resizable(true);
    operations_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::unordered_map<c10::StorageImpl*, size_t> operations_;
};

}  // namespace

bool is_in_flight(const at::Tensor& tensor) {
  return tensor.has_storage() && Pinned::instance().has(tensor.storage().unsafeGetStorageImpl());
}

Pins::Pins(const Operands& operands) {
  for (const at::Tensor& tensor : operands.results()) pin(tensor);
  for (const at::Tensor& tensor : operands.inputs()) pin(tensor);
}

void Pins::pin(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return;
  storages_.push_back(tensor.storage());
  Pinned::instance().pin(storages_.back().unsafeGetStorageImpl());
}

void Pins::release() {
  for (const c10::Storage& storage : storages_) {
    Pinned::instance().unpin(storage.unsafeGetStorageImpl());
  }
  storages_.clear();
}

}  // namespace rdmacoll::torch_ext
