// open_verbs(): the verbs transport on the device that the config chooses.
// Floor: transport/verbs. Thread: any.
#include "csrc/transport/verbs/open_verbs.h"

#include "csrc/transport/verbs/device/device.h"
#include "csrc/transport/verbs/transport.h"

namespace rdmacoll {

Result<std::unique_ptr<Transport>> open_verbs(const Config& config, const Clock& clock,
                                              const ThisProcess& process) {
  auto table = load_libibverbs();
  if (!table.ok()) return table.status();
  auto transport = VerbsTransport::open(table.value(), config, clock, process);
  if (!transport.ok()) return transport.status();
  return std::unique_ptr<Transport>(transport.take());
}

Result<std::string> explain_verbs(const Config& config) {
  auto table = load_libibverbs();
  if (!table.ok()) return table.status();
  auto device = Device::open(table.value(), config);
  if (!device.ok()) return device.status();
  return device.value()->describe() + ": " + device.value()->reason();
}

}  // namespace rdmacoll
