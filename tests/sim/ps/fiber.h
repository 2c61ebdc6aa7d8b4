// Fiber: a program with a stack of its own, which runs only while resume() waits for it, so that a
// program which blocks can be one of several that a seed schedules. Floor: tests. Thread: one;
// yield() is called by the program itself.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace rdmacoll::ps {

class Fiber {
 public:
  explicit Fiber(std::function<void(Fiber&)> body)
      : body_(std::move(body)), stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)) {
    getcontext(&own_.context);
    own_.context.uc_stack.ss_sp = stack_.get();
    own_.context.uc_stack.ss_size = kStackBytes;
    own_.bottom = stack_.get();
    own_.bytes = kStackBytes;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&own_.context, reinterpret_cast<void (*)()>(&Fiber::begin), 2,
                static_cast<uint32_t>(self >> 32), static_cast<uint32_t>(self));
  }
  ~Fiber() {
    while (!is_done_) resume();
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  bool is_done() const { return is_done_; }
  void resume() { swap(resumer_, own_); }
  void yield() { swap(own_, resumer_); }

 private:
  static constexpr size_t kStackBytes = 1 << 20;
  struct Side {
    ucontext_t context{};
    const void* bottom = nullptr;
    size_t bytes = 0;
  };

  // makecontext() passes numbers of 32 bits alone.
  static void begin(uint32_t high, uint32_t low) {
    Fiber& self = *reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
    self.arrive(nullptr, self.resumer_);
    self.body_(self);
    self.is_done_ = true;
    self.yield();
  }
  void swap(Side& from, Side& to) {
    void* frames = nullptr;
    leave(&frames, to);
    swapcontext(&from.context, &to.context);
    arrive(frames, to);
  }
  // The address sanitizer is told which stack is in use.
#ifdef __SANITIZE_ADDRESS__
  void leave(void** frames, const Side& to) {
    __sanitizer_start_switch_fiber(is_done_ ? nullptr : frames, to.bottom, to.bytes);
  }
  void arrive(void* frames, Side& left) {
    __sanitizer_finish_switch_fiber(frames, &left.bottom, &left.bytes);
  }
#else
  void leave(void**, const Side&) {}
  void arrive(void*, Side&) {}
#endif

  const std::function<void(Fiber&)> body_;
  const std::unique_ptr<std::byte[]> stack_;
  Side own_;
  Side resumer_;
  bool is_done_ = false;
};

}  // namespace rdmacoll::ps
