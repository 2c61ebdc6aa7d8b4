// operations: what the mount does for the kernel, as libfuse wants it. Each request is answered
// once; errors are Problems until then. Floor: fuse_ext. Thread: any, without the GIL.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "fuse_ext/mount.h"
#include "fuse_ext/problem.h"

namespace rdmacoll::fuse {

fuse_lowlevel_ops operations();

// file_operations.cc
void add_file_operations(fuse_lowlevel_ops& all);

inline Mount& mount_of(fuse_req_t request) {
  return *static_cast<Mount*>(libfuse().req_userdata(request));
}

// act: answers, unless it throws.
template <typename Act>
void answer(fuse_req_t request, Act act) {
  try {
    act();
  } catch (const Problem& problem) {
    libfuse().reply_err(request, problem.number);
  } catch (const std::bad_alloc&) {
    libfuse().reply_err(request, ENOMEM);
  } catch (const std::exception& error) {  // of a value from Python that is none
    std::fprintf(stderr, "rdmacoll mount: %s\n", error.what());
    libfuse().reply_err(request, EIO);
  }
}

struct stat about(NodeId id, const Node& node);
// What the kernel is told of a node that it has looked up.
fuse_entry_param known_as(NodeId id, const Node& node);
Place place_in(const Node& folder, const char* name);

}  // namespace rdmacoll::fuse
