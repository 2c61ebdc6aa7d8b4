// LibFuse: the functions of the machine's libfuse3 that the mount calls. The library is opened at
// run time, where there is one. Floor: fuse_ext. Thread: any.
#pragma once

#define FUSE_USE_VERSION 35
#include <fuse3/fuse_lowlevel.h>

namespace rdmacoll::fuse {

struct LibFuse {
  // clang-format off
#define RDMACOLL_LIBFUSE(X) \
  X(session_new) X(session_mount) X(session_unmount) X(session_destroy) X(session_exit) \
  X(session_exited) X(session_receive_buf) X(session_process_buf) X(opt_free_args) \
  X(opt_add_arg) X(req_userdata) X(reply_err) X(reply_none) X(reply_entry) X(reply_create) \
  X(reply_attr) X(reply_open) X(reply_write) X(reply_buf) X(reply_statfs) X(reply_xattr) \
  X(add_direntry)
// clang-format on
#define X(name) decltype(&fuse_##name) name = nullptr;
  RDMACOLL_LIBFUSE(X)
#undef X
};

// The library that is open from the first call on. Throws std::runtime_error, which says what to
// install.
const LibFuse& libfuse();

}  // namespace rdmacoll::fuse
