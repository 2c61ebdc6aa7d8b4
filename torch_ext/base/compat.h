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

namespace rdmacoll::torch_ext {

// The name that all versions have; 2.13 made it an alias of PreMulSumSupplement.
using PreMulSumSupplement = c10d::NCCLPreMulSumSupplement;

}  // namespace rdmacoll::torch_ext
