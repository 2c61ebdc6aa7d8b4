// OwnRates: what a worker's schedule has made of the rates of a table's optimizer, for one push.
// Floor: ps/client. Thread: values.
#pragma once

#include <optional>

#include "csrc/base/status.h"
#include "csrc/ps/table/table_spec.h"
#include "csrc/reduce/optimizer.h"

namespace rdmacoll::ps {

// nullopt: as the table was made.
struct OwnRates {
  std::optional<double> lr{};
  std::optional<double> momentum{};

  Rates over(const Rates& made) const {
    return {lr.value_or(made.lr), momentum.value_or(made.momentum)};
  }
};

// With which a push is applied. InvalidArgument: the table's optimizer cannot have them.
Result<Rates> rates_of(const TableSpec& spec, const OwnRates& own);

}  // namespace rdmacoll::ps
