// PushAs: what a push does with its values. Floor: ps/table. Thread: values.
#pragma once

#include <cstdint>

namespace rdmacoll::ps {

enum class PushAs : uint16_t {
  Gradient,    // for the table's optimizer; added where there is none
  Assigned,    // they are the new values; the optimizer begins anew there
  Generation,  // none: so many workers go in step from now on (pace_steps.h)
  Restored,    // all that was saved (saved.h); of a part without rows: its bucket has none any more
};

}  // namespace rdmacoll::ps
