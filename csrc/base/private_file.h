// Files that tell of a job, in folders where others may write: whatever they have put there under
// the name, a link, a pipe, a file of theirs, is neither followed nor opened nor waited for.
// Floor: base. Thread: any.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

// Writes `folder`/`name`, which appears whole and which this user alone can read. It is made under
// a name that nobody can guess and then takes the place of what is there. The folder is made, for
// this user alone, if it does not exist; those above it are not. System names the path.
Status write_private_file(const std::string& folder, const std::string& name,
                          const std::string& text);

}  // namespace rdmacoll
