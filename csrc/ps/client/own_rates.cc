// OwnRates. Floor: ps/client. Thread: values.
#include "csrc/ps/client/own_rates.h"

#include "csrc/base/printable.h"

namespace rdmacoll::ps {

Result<Rates> rates_of(const TableSpec& spec, const OwnRates& own) {
  const Optimizer made = optimizer_of(spec);
  const Rates rates = own.over(rdmacoll::rates_of(made));
  if (!own.lr && !own.momentum) return rates;
  const std::string table = "table '" + printable(spec.name) + "': ";
  if (!spec.optimizer) {
    return Status(StatusCode::InvalidArgument,
                  table + "it has no optimizer, so a push of it has no rate; leave lr out");
  }
  const Status checked = check(made, rates);
  if (!checked.ok()) return Status(checked.code(), table + checked.message());
  return rates;
}

}  // namespace rdmacoll::ps
