// FakeNetwork: RDMA devices joined by a network, all inside this process, behind the functions of a
// VerbsTable. Ranks are threads, each with a context of its own. It is a stern judge: what the
// standard forbids fails or aborts, what the standard leaves open happens in random order, and what
// most devices forgive it does not.
//
// It leaves out what the transport does not use: SEND on connections, atomics, shared receive
// queues, memory windows, multicast.
#pragma once

#include <string>

#include "csrc/transport/verbs/device/table.h"
#include "tests/fake_verbs/registry.h"
#include "tests/fake_verbs/specs.h"
#include "tests/fake_verbs/wire.h"

namespace rdmacoll::fake {

class FakeNetwork {
 public:
  // One at a time in a process: the functions of the table have no other way to find it.
  explicit FakeNetwork(const NetworkSpec& spec = NetworkSpec());
  ~FakeNetwork();
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  static VerbsTable table();

  // --- what tests make go wrong, on all that is open on a device --------------------------------
  // As when its processes are killed: everything vanishes. Their calls fail from then on.
  void kill(const std::string& device);
  // Tells the contexts of the device by an event.
  void set_port(const std::string& device, ibv_port_state state);
  // An event about the device or its first port.
  void report(const std::string& device, ibv_event_type type);
  // All calls of a kind fail with this errno; 0: no more.
  void refuse_registrations(const std::string& device, int error);
  void refuse_queue_pairs(const std::string& device, int error);
  void refuse_sends(const std::string& device, int error);
  // The next message that a connection of the device begins fails with this status.
  void fail_next_message(const std::string& device, ibv_wc_status status);
  // Connections of the device send nothing any more, and say nothing of it.
  void stand_still(const std::string& device);
  void lose_datagrams(double share);

  // --- what tests ask ---------------------------------------------------------------------------
  WireCounts counts();
  // What is still open or registered, in words; "" when nothing is.
  std::string leaks();

  // --- for the functions of the table -----------------------------------------------------------
  static FakeNetwork& current();
  Registry registry;
  Wire wire;

 private:
  Device& named(const std::string& device);
};

}  // namespace rdmacoll::fake
