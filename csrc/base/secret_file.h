// A file with the job's secret: read whole, and only if nobody else can have read or chosen it.
// Floor: base. Thread: any.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

// InvalidArgument names RDMACOLL_SECRET_FILE, the file, what is wrong with it and the remedy.
Result<std::string> read_secret_file(const std::string& path);

}  // namespace rdmacoll
