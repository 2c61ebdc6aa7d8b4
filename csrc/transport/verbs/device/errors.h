// What the device reports, in words: which peer, device and port, what the report means, and what
// to do about it.
// Floor: transport/verbs/device. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/transport/verbs/device/device.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll {

// The end of the connection to `peer` that a completion with an error means. PeerFailed, or
// System where this side is at fault.
Status completion_error(const ibv_wc& completion, const std::string& peer, const Device& device,
                        const VerbsConfig& config);

// ibv_reg_mr() of `bytes` failed; with the limit on locked memory when that is the reason.
Status registration_error(int error, uint64_t bytes, const Device& device);

// Another call failed: what was tried, with which errno.
Status call_error(const std::string& tried, int error, const Device& device);

// For so long the device has said nothing of what it was to send.
Status stands_still(const std::string& peer, const Device& device, int64_t seconds);

// An asynchronous event, in words, and what it means for the connections.
enum class Gravity : uint8_t {
  Notice,   // none of their business
  Trouble,  // they may break of it
  Fatal,    // they have ended, all of them
};
std::string describe_event(const ibv_async_event& event, const Device& device);
Gravity gravity_of(const ibv_async_event& event);

}  // namespace rdmacoll
