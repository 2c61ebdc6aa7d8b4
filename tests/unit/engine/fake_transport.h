// FakeTransport: a transport that does what a test says when it is asked to connect or to register
// memory, to signal or to read, and remembers that it was asked. It moves no data by itself.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/transport/transport.h"

namespace rdmacoll {

// Stands still unless a test moves it, or a fake waits.
struct ManualClock final : Clock {
  int64_t now_ns() const override { return at_ns; }
  void wait_until(Deadline deadline) { at_ns = deadline.at_ns; }
  int64_t at_ns = 1'000'000'000;
};

class FakeTransport final : public Transport {
 public:
  using Answer = std::function<Result<PeerId>(const std::string& address, Deadline deadline)>;

  using Signal = std::function<Posted(RemoteSlice slice, uint64_t counter, const Header& header)>;

  using Get = std::function<Posted(PeerId peer, RemoteSlice source, LocalSlice destination,
                                   Ticket* ticket)>;

  FakeTransport(std::string name, std::string address) {
    set_info({.name = std::move(name), .address = std::move(address)});
  }
  void set_device(const std::string& device) {
    change([&](TransportInfo& info) { info.device = device; });
  }
  void share_memory() {
    change([](TransportInfo& info) { info.shares_memory = true; });
  }
  void ask_for_attention(int fd) {
    change([=](TransportInfo& info) { info.attention_fd = fd; });
  }
  void set_up_by(int fd) {
    change([=](TransportInfo& info) { info.set_up_fd = fd; });
  }
  // Whether it maps is open_as's matter.
  void claim_island(const std::string& island) {
    change([&](TransportInfo& info) { info.island = island; });
  }
  void end(PeerId peer, const Status& why) { note_end(peer, why); }

  // What the test sets.
  Answer on_connect = [](const std::string&, Deadline) { return PeerId{7}; };
  Signal on_signal = [](RemoteSlice, uint64_t, const Header&) { return Posted::Full; };
  Get on_get = [](PeerId, RemoteSlice, LocalSlice, Ticket*) { return Posted::Full; };
  std::function<void(PeerId peer, RegionId region, uint64_t note)> on_offer = [](PeerId, RegionId,
                                                                                 uint64_t) {};
  std::function<void()> on_poll = [] {};
  Status on_register;
  std::set<std::string> callers;  // addresses
  SetUpReport report;             // what serve() hands over, once
  Region open_as{.id = 0};        // what every key opens
  std::set<RegionId> held;        // not is_reusable()

  struct Offered {
    PeerId peer;
    RegionId region;
    uint64_t note;
  };

  // What it sees.
  std::vector<std::string> connected;
  std::map<RegionId, std::shared_ptr<SharedSegment>> regions;
  std::vector<Offered> offered;  // with a note
  std::vector<std::string> opened;
  std::vector<RegionId> closed;

  Result<PeerId> connect(const std::string& address, Deadline deadline) override {
    connected.push_back(address);
    return on_connect(address, deadline);
  }
  bool called_by(const std::string& address) const override { return callers.contains(address); }
  Result<std::string> register_region(RegionId region, const RegionMemory& memory) override {
    if (!on_register.ok()) return on_register;
    regions[region] = memory.segment;
    return info().name + " key " + std::to_string(region);
  }
  void serve(SetUpReport& into) override {
    std::move(report.offers.begin(), report.offers.end(), std::back_inserter(into.offers));
    std::move(report.callers.begin(), report.callers.end(), std::back_inserter(into.callers));
    report = {};
  }
  Status offer_region(PeerId peer, RegionId region, uint64_t note) override {
    if (note != kNoNote) offered.push_back({peer, region, note});
    on_offer(peer, region, note);
    return Status();
  }
  Result<Region> open_region(PeerId, std::string_view key, Deadline) override {
    opened.emplace_back(key);
    return open_as;
  }
  void close_region(PeerId, RegionId region, std::string_view) override {
    closed.push_back(region);
  }
  void cut_off_region(RegionId) override {}
  void release_region(RegionId region, Release) override { regions.erase(region); }
  bool is_reusable(RegionId region) override { return !held.contains(region); }

  Posted put(PeerId, uint8_t, LocalSlice, RemoteSlice, Ticket*) override { return Posted::Full; }
  Posted get(PeerId peer, uint8_t, RemoteSlice source, LocalSlice destination,
             Ticket* ticket) override {
    return on_get(peer, source, destination, ticket);
  }
  Posted signal(PeerId, uint8_t, RemoteSlice slice, uint64_t counter,
                const Header& header) override {
    return on_signal(slice, counter, header);
  }
  void poll() override { on_poll(); }
  int arm() override { return info().attention_fd; }
  void disarm() override {}
  Status fence(PeerId, Deadline) override { return Status(); }

 private:
  template <typename Change>
  void change(const Change& change) {
    TransportInfo changed = info();
    change(changed);
    set_info(std::move(changed));
  }
};

}  // namespace rdmacoll
