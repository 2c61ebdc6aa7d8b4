// Problem: why an operation on the mount fails: the number that the program gets, and the words for
// people. Floor: fuse_ext. Thread: values.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "csrc/base/status.h"

namespace rdmacoll::fuse {

struct Problem {
  int number = EIO;
  std::string why{};
};

inline Problem problem_of(const Status& status) {
  switch (status.code()) {
    case StatusCode::System:
      return {ENOSPC, status.message()};
    case StatusCode::InvalidArgument:  // a table of this version was dropped
      return {ESTALE, status.message()};
    default:
      return {EIO, status.message()};
  }
}

inline void throw_if_failed(const Status& status) {
  if (!status.ok()) throw problem_of(status);
}

template <typename T>
T take_or_throw(Result<T> result) {
  throw_if_failed(result.status());
  return result.take();
}

}  // namespace rdmacoll::fuse
