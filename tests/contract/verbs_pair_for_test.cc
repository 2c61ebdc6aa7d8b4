// VerbsPair: how two transports meet.
#include <thread>

#include "tests/contract/verbs_pair.h"

namespace rdmacoll {

fake::NetworkSpec two_devices(uint64_t seed) {
  fake::NetworkSpec spec;
  spec.seed = seed;
  spec.devices = {fake::roce_device(0), fake::roce_device(1)};
  return spec;
}

Config on_device(int number) {
  Config config;
  config.log_level = LogLevel::Error;  // failures are what these tests are about
  config.settings.set("RDMACOLL_HCA", "=fake" + std::to_string(number));
  return config;
}

VerbsPair::VerbsPair(VerbsPairOptions options) : network(two_devices(options.seed)) {
  for (int i = 0; i < 2; ++i) {
    Config config = on_device(i);
    config.settings.set("RDMACOLL_IB_QPS", std::to_string(options.queue_pairs));
    auto opened =
        VerbsTransport::open(fake::FakeNetwork::table(), config, clock, ThisProcess::make().take());
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    transport[i] = opened.take();
    region[i] = make_region(at(i), 0, options.region_bytes).take();
  }
  const Deadline deadline = Deadline::after_ms(clock, 20'000);
  const auto meet = [&](int i) {
    Result<PeerId> met = at(i).connect(at(1 - i).info().address, deadline);
    EXPECT_TRUE(met.ok()) << met.status().message();
    peer[i] = met.value();
    EXPECT_TRUE(at(i).offer_region(peer[i], region[i].id, kNoNote).ok());
    EXPECT_TRUE(at(i).open_region(peer[i], region[1 - i].key, deadline).ok());
  };
  std::thread other(meet, 1);
  meet(0);
  other.join();
}

VerbsPair::~VerbsPair() {
  // Each waits a while for the other to hear its goodbye.
  std::thread other([&] { transport[1].reset(); });
  transport[0].reset();
  other.join();
  EXPECT_EQ(network.leaks(), "");
  EXPECT_EQ(network.counts().receivers_not_ready, 0u);
}

void VerbsPair::poll() {
  for (const auto& one : transport) one->poll();
  std::this_thread::yield();
}

bool VerbsPair::until(const std::function<bool()>& holds) {
  const SteadyClock steady;
  const Deadline deadline = Deadline::after_ms(steady, 20'000);
  while (!holds()) {
    if (deadline.passed(steady)) return false;
    poll();
  }
  return true;
}

}  // namespace rdmacoll
