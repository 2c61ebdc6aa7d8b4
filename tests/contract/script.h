// Script: what one rank does in a contract test, as a coroutine, so that the same words run in a
// thread, in a process, or beside all other ranks in the one thread of a simulation.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace rdmacoll {

class Script {
 public:
  struct promise_type {
    std::coroutine_handle<> caller;
    std::exception_ptr failure;

    struct BackToCaller {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) noexcept {
        const std::coroutine_handle<> caller = ended.promise().caller;
        return caller ? caller : std::noop_coroutine();
      }
      void await_resume() noexcept {}
    };

    Script get_return_object() {
      return Script(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    BackToCaller final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
  };

  Script(Script&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~Script() {
    if (handle_) handle_.destroy();
  }

  // As an outermost script.
  std::coroutine_handle<> handle() const { return handle_; }
  bool ended() const { return handle_.done(); }
  void rethrow() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

  // co_await of one script in another.
  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) {
    handle_.promise().caller = caller;
    return handle_;
  }
  void await_resume() { rethrow(); }

 private:
  explicit Script(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace rdmacoll
