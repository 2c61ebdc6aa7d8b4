// The transports that there are: the one list that names them all, the best first. A new transport
// adds its row. Floor: engine/connect. Thread: any.
#pragma once

#include <memory>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

struct TransportRow {
  const char* name;
  bool is_built;     // it may be left out when the library is built
  bool spans_hosts;  // it may reach processes on other hosts
  // Unsupported: this machine has none, and says why.
  Result<std::unique_ptr<Transport>> (*open)(const Config& config, const Clock& clock);
};

std::span<const TransportRow> transport_table();

// Whether RDMACOLL_TRANSPORT and RDMACOLL_REQUIRE name transports of the table.
Status check_transport_names(const Config& config);

}  // namespace rdmacoll
