// write_private_file(): writes a file about a job into a folder where other users may write, too.
// What they have put there under its name (a link, a pipe, a file of theirs) is replaced, and never
// followed or opened.
// Floor: base. Thread: any.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace rdmacoll {

// Writes `folder`/`name`, which appears whole and which this user alone can read. It is made under
// a name that nobody can guess and then takes the place of what is there. The folder is made, for
// this user alone, if it does not exist; those above it are not. An error names the path.
Status write_private_file(const std::string& folder, const std::string& name,
                          const std::string& text);

}  // namespace rdmacoll
