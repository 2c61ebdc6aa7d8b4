// FakeTransport: a transport that does what a test says when it is asked to connect or to register
// memory or to signal, and remembers that it was asked. It moves no data by itself.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
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
  using Answer = std::function<Result<PeerId>(const std::string& card, Deadline deadline)>;

  using Signal = std::function<Posted(RemoteSlice slice, uint64_t counter, const Header& header)>;

  FakeTransport(std::string name, std::string card) : name_(std::move(name)), card_(card) {}

  // What the test sets.
  Answer on_connect = [](const std::string&, Deadline) { return PeerId{7}; };
  Signal on_signal = [](RemoteSlice, uint64_t, const Header&) { return Posted::Full; };
  Status on_register;
  Status peer;                    // of peer_status()
  std::set<std::string> callers;  // cards
  std::string device;
  bool is_memory = false;       // of shares_memory()
  std::byte* mapped = nullptr;  // of map()
  uint64_t open_bytes = 0;      // of opened_bytes()
  std::set<RegionId> held;      // not is_reusable()

  // What it sees.
  std::vector<std::string> connected;
  std::map<RegionId, std::shared_ptr<SharedSegment>> regions;
  std::vector<std::string> opened;
  std::vector<RegionId> closed;
  bool left = false;

  const char* name() const override { return name_.c_str(); }
  std::string describe() const override { return device; }
  std::string local_card() const override { return card_; }
  Result<PeerId> connect(const std::string& card, Deadline deadline) override {
    connected.push_back(card);
    return on_connect(card, deadline);
  }
  bool called_by(const std::string& card) const override { return callers.contains(card); }
  Status register_region(RegionId region, std::shared_ptr<SharedSegment> memory) override {
    if (on_register.ok()) regions[region] = std::move(memory);
    return on_register;
  }
  std::string region_key(RegionId region) const override {
    return name_ + " key " + std::to_string(region);
  }
  Status offer_region(PeerId, RegionId) override { return Status(); }
  Status open_region(PeerId, const std::string& key, Deadline) override {
    opened.push_back(key);
    return Status();
  }
  uint64_t opened_bytes(PeerId, RegionId) const override { return open_bytes; }
  bool open_by_short_key(PeerId, RegionId, const ShortKey&) override { return true; }
  void close_region(PeerId, RegionId region) override { closed.push_back(region); }
  void withdraw_region(RegionId) override {}
  void release_region(RegionId region) override { regions.erase(region); }
  bool is_reusable(RegionId region) override { return !held.contains(region); }

  Posted put(PeerId, uint8_t, LocalSlice, RemoteSlice, Ticket*) override { return Posted::Full; }
  Posted get(PeerId, uint8_t, RemoteSlice, LocalSlice, Ticket*) override { return Posted::Full; }
  Posted signal(PeerId, uint8_t, RemoteSlice slice, uint64_t counter,
                const Header& header) override {
    return on_signal(slice, counter, header);
  }
  bool done(Ticket) override { return true; }
  void poll() override {}
  int arm() override { return -1; }
  void disarm() override {}
  void wake() override {}
  bool shares_memory() const override { return is_memory; }
  std::byte* map(PeerId, RegionId) override { return mapped; }
  Status peer_status(PeerId) const override { return peer; }
  Status fence(PeerId, Deadline) override { return Status(); }
  void shutdown() override { left = true; }

 private:
  const std::string name_;
  const std::string card_;
};

}  // namespace rdmacoll
