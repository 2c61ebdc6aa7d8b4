// The one header that knows torch's versions: 2.11, 2.13 and 2.15.
// Floor: torch_ext/base. Thread: n/a.
#pragma once

#include <torch/headeronly/version.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

// The reconfigure interface came with 2.15; with it Backend::Options::clone(), and ranks that
// change.
#ifdef C10D_BACKEND_HAS_RECONFIGURE
#define RDMACOLL_HAVE_RECONFIGURE 1
#endif

// What 2.13 made virtual in Backend.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
#define RDMACOLL_OVERRIDE_SINCE_2_13 override
#else
#define RDMACOLL_OVERRIDE_SINCE_2_13
#endif

// One-sided windows, too. Older ones get what the interface is made of, so that what implements it
// is compiled and tested with every torch.
#ifdef C10D_BACKEND_HAS_WINDOW
#include <torch/csrc/distributed/c10d/Window.hpp>
#define RDMACOLL_HAVE_WINDOW 1
#define RDMACOLL_OVERRIDE_OF_WINDOW override
namespace rdmacoll::torch_ext {
using WindowBase = c10d::Window;
using WindowAccessType = c10d::WindowAccessType;
using WindowAttr = c10d::WindowAttr;
using PutOptions = c10d::PutOptions;
using SignalOptions = c10d::SignalOptions;
using WaitSignalOptions = c10d::WaitSignalOptions;
}  // namespace rdmacoll::torch_ext
#else
#include <torch/custom_class.h>

#include <chrono>
#include <cstdint>
#define RDMACOLL_OVERRIDE_OF_WINDOW
namespace rdmacoll::torch_ext {
class WindowBase : public torch::CustomClassHolder {};
enum class WindowAccessType : uint8_t { UNIFIED, SEPARATE };
struct WindowAttr {
  WindowAccessType access_type = WindowAccessType::UNIFIED;
};
struct WindowOptions {
  std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
};
using PutOptions = WindowOptions;
using SignalOptions = WindowOptions;
using WaitSignalOptions = WindowOptions;
}  // namespace rdmacoll::torch_ext
#endif

namespace rdmacoll::torch_ext {

// The name that all versions have; 2.13 made it an alias of PreMulSumSupplement.
using PreMulSumSupplement = c10d::NCCLPreMulSumSupplement;

}  // namespace rdmacoll::torch_ext
