// The contract on TCP over loopback: threads of a job without a secret, and processes with one,
// over several connections each.
#include "csrc/transport/tcp/transport.h"
#include "tests/contract/contract.h"

namespace rdmacoll::contract_tcp {
namespace {

Config on_loopback() {
  Config config;
  config.settings.set("RDMACOLL_SOCKET_IFNAME", "=lo");
  return config;
}

Result<std::unique_ptr<Transport>> open_with(const Config& config, const Clock& clock) {
  auto opened = TcpTransport::open(config, clock, ThisProcess::make().take());
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<Transport>(opened.take());
}

void run_as_threads(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_threads(kind, world, seed, body,
              [](int, const Clock& clock) { return open_with(on_loopback(), clock); });
}

void run_as_processes(const Kind& kind, int world, uint64_t seed, const Body& body) {
  run_processes(kind, world, seed, body, [](int, const Clock& clock) {
    Config config = on_loopback();
    config.settings.set("RDMACOLL_TCP_STREAMS", "3");
    config.secret.text = "the secret of the contract";
    return open_with(config, clock);
  });
}

constexpr Kind kThreads{.name = "TcpThreads", .run = run_as_threads, .any_order = true};
constexpr Kind kProcesses{.name = "TcpProcesses", .run = run_as_processes, .any_order = true};

INSTANTIATE_TEST_SUITE_P(Tcp, Contract,
                         ::testing::Combine(::testing::Values(&kThreads, &kProcesses),
                                            ::testing::Values(1, 2, 3, 4)),
                         contract_case);

}  // namespace
}  // namespace rdmacoll::contract_tcp
