// The contract on shared memory.
#include "csrc/transport/shm/transport.h"
#include "tests/contract/contract.h"

namespace rdmacoll::contract_shm {
namespace {

Result<std::unique_ptr<Transport>> open_shm(int, const Clock& clock) {
  auto opened = ShmTransport::open(Config{}, clock, ThisProcess::make().take());
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Transport>(opened.take());
}

void run_as_threads(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_threads(kind, world, seed, body, open_shm);
}

void run_as_processes(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_processes(kind, world, seed, body, open_shm);
}

constexpr Kind kThreads{.name = "ShmThreads",
                        .run = run_as_threads,
                        .maps = true,
                        .any_order = true,
                        .trespasser = Trespasser::IsOwner};
constexpr Kind kProcesses{.name = "ShmProcesses",
                          .run = run_as_processes,
                          .maps = true,
                          .any_order = true,
                          .trespasser = Trespasser::Dies};

INSTANTIATE_TEST_SUITE_P(Shm, Contract,
                         ::testing::Combine(::testing::Values(&kThreads, &kProcesses),
                                            ::testing::Values(1, 2, 3, 4)),
                         contract_case);

}  // namespace
}  // namespace rdmacoll::contract_shm
