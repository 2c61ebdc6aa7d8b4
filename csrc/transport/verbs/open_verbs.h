// What the engine sees of this folder, beside its settings (settings/). Whether the machine has
// libibverbs, and a device, turns out when it is opened. Floor: transport/verbs. Thread: any.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/transport/this_process.h"
#include "csrc/transport/transport.h"

namespace rdmacoll {

inline constexpr const char* kVerbsName = "verbs";

// The transport on the device that the config chooses. Unsupported, with the reason and the remedy,
// when this machine has no usable one. `clock` must outlive the transport and run in real time.
Result<std::unique_ptr<Transport>> open_verbs(const Config& config, const Clock& clock,
                                              const ThisProcess& process);

// For people: the device that open_verbs() would take, and why that one. Unsupported as there.
Result<std::string> explain_verbs(const Config& config);

}  // namespace rdmacoll
