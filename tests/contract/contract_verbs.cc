// The contract on verbs over an emulated network of two devices; even ranks are on one, odd ones on
// the other.
#include "csrc/transport/verbs/transport.h"
#include "tests/contract/contract.h"
#include "tests/fake_verbs/network.h"

namespace rdmacoll::contract_verbs {
namespace {

void run_verbs(const Kind& kind, int world, uint64_t seed, const Body& body) {
  fake::NetworkSpec spec;
  spec.seed = seed;
  spec.devices = {fake::roce_device(0), fake::roce_device(1)};
  fake::FakeNetwork network(spec);
  const auto open = [](int rank, const Clock& clock) -> Result<std::unique_ptr<Transport>> {
    Config config;
    config.place.local_rank = rank;
    auto opened =
        VerbsTransport::open(fake::FakeNetwork::table(), config, clock, ThisProcess::make().take());
    if (!opened.ok()) return opened.status();
    return std::unique_ptr<Transport>(opened.take());
  };
  run_threads(kind, world, seed, body, open);
  EXPECT_EQ(network.counts().receivers_not_ready, 0u);
  EXPECT_EQ(network.leaks(), "");
}

constexpr Kind kThreads{.name = "VerbsThreads", .run = run_verbs, .seeds = 3, .messages = 200};

INSTANTIATE_TEST_SUITE_P(Verbs, Contract,
                         ::testing::Combine(::testing::Values(&kThreads),
                                            ::testing::Values(1, 2, 3, 4)),
                         contract_case);

}  // namespace
}  // namespace rdmacoll::contract_verbs
