// The contract on verbs over the RDMA devices of this machine; without one, it fails. Ranks are
// spread over the devices.
#include "csrc/transport/verbs/transport.h"
#include "tests/contract/contract.h"

namespace rdmacoll {
namespace {

Result<std::unique_ptr<Transport>> open_on_device(int rank, const Clock& clock) {
  auto table = load_libibverbs();
  if (!table.ok()) return table.status();
  Result<Config> config = Config::from_environment();
  if (!config.ok()) return config.status();
  config.value().place.local_rank = rank;
  auto opened =
      VerbsTransport::open(table.value(), config.value(), clock, ThisProcess::make().take());
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Transport>(opened.take());
}

void run_as_threads(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_threads(kind, world, seed, body, open_on_device);
}

void run_as_processes(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_processes(kind, world, seed, body, open_on_device);
}

constexpr Kind kThreads{.name = "VerbsDeviceThreads", .run = run_as_threads, .messages = 400};
constexpr Kind kProcesses{.name = "VerbsDeviceProcesses", .run = run_as_processes, .messages = 400};

INSTANTIATE_TEST_SUITE_P(Device, Contract,
                         ::testing::Combine(::testing::Values(&kThreads, &kProcesses),
                                            ::testing::Values(1, 2, 3, 4)),
                         contract_case);

}  // namespace
}  // namespace rdmacoll
