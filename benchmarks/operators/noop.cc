// An operator of the schema of rdmacoll::all_reduce_ that does nothing: what torch's own part of a
// call costs. run.py compiles it. Floor: benchmarks. Thread: any.
#include <torch/library.h>

#include <cstdint>
#include <string_view>

namespace {

void noop(at::Tensor&, int64_t, std::string_view) {}

}  // namespace

TORCH_LIBRARY(rdmacoll_bench, library) {
  library.def("noop_(Tensor(a!) tensor, int group, str op=\"sum\") -> ()");
}

TORCH_LIBRARY_IMPL(rdmacoll_bench, CPU, library) { library.impl("noop_", TORCH_FN(noop)); }
