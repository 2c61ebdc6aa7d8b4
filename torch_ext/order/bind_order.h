// bind_order: operations by name, as Python has them (rdmacoll/_C.pyi).
// Floor: torch_ext/order. Thread: with the GIL.
#pragma once

namespace pybind11 {
class module_;
}

namespace rdmacoll::torch_ext {

void bind_order(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
