// The transports that there are: the one list that names them all, the best first. A new transport
// adds its row. Floor: engine/connect. Thread: any.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/settings.h"
#include "csrc/base/status.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

struct TransportRow {
  const char* name;
  bool spans_hosts;  // it may reach processes on other hosts
  // Unsupported: this machine has none, or none for this process, and says why. With "auto" that is
  // an error only where a peer is not reached otherwise. The process is this one, for all of them.
  Result<std::unique_ptr<Transport>> (*open)(const Config& config, const Clock& clock,
                                             const ThisProcess& process);
  // Ok, or that a setting of its own must have another value.
  Status (*check)(const Settings& settings);
  // What of its valid settings must be equal on all ranks.
  std::string (*agreement)(const Settings& settings);
  // For people: the device that open() would take, and why that one. nullptr: it chooses none.
  Result<std::string> (*explain)(const Config& config);
};

std::span<const TransportRow> transport_table();

// Whether RDMACOLL_TRANSPORT and RDMACOLL_REQUIRE name transports of the table, and what all of
// these say of their settings.
Status check_transport_settings(const Config& config);

// Of the first transport that chooses a device.
Result<std::string> explain_device(const Config& config);

}  // namespace rdmacoll
