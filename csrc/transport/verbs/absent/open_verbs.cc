// open_verbs() of a build without the verbs transport: says so.
// Floor: transport/verbs/absent. Thread: any.
#include "csrc/transport/verbs/open_verbs.h"

namespace rdmacoll {
namespace {

Status without_verbs() {
  return Status(StatusCode::Unsupported,
                "this rdmacoll was built without verbs (RDMACOLL_WITHOUT_VERBS=1); install "
                "libibverbs-dev, or rdma-core-devel on Red Hat, and build it again without the "
                "variable");
}

}  // namespace

bool built_with_verbs() { return false; }

Result<std::unique_ptr<Transport>> open_verbs(const Config&, const Clock&, const ThisProcess&) {
  return without_verbs();
}

Result<std::string> explain_verbs(const Config&) { return without_verbs(); }

}  // namespace rdmacoll
