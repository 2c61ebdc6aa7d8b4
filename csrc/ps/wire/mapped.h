// Mapped: memory of another process that is mapped here. Floor: ps/wire. Thread: values.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace rdmacoll::ps {

// Empty: it is not mapped, or not any more.
struct Mapped {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> keeps{};  // it mapped
};

}  // namespace rdmacoll::ps
