// LibFuse. Floor: fuse_ext. Thread: any.
#include "fuse_ext/libfuse.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace rdmacoll::fuse {
namespace {

LibFuse load() {
  void* const library = dlopen("libfuse3.so.3", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("a mount needs libfuse3: install fuse3 (Debian, Ubuntu, "
                                         "Red Hat, SUSE): ") +
                             dlerror());
  }
  LibFuse all;
  const auto find = [library](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) {
      throw std::runtime_error(std::string("libfuse3 has no ") + name +
                               "; install fuse3, 3.10 or "
                               "later");
    }
  };
#define X(name) find("fuse_" #name, all.name);
  RDMACOLL_LIBFUSE(X)
#undef X
  return all;
}

}  // namespace

const LibFuse& libfuse() {
  static const LibFuse all = load();
  return all;
}

}  // namespace rdmacoll::fuse
