// What the emulated network is made of and how it behaves: devices, ports, timings, losses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "csrc/transport/verbs/abi/verbs.h"

namespace rdmacoll::fake {

struct PortSpec {
  bool ethernet = true;
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu mtu = IBV_MTU_1024;
  uint16_t lid = 0;                      // InfiniBand only
  std::vector<ibv_gid_entry> gids = {};  // by index; an empty GID is a hole in the table
};

struct DeviceSpec {
  std::string name;
  std::vector<PortSpec> ports;
  uint32_t max_inline_bytes = 256;
  ibv_device_attr limits{};
};

// One Ethernet port with the GIDs of fe80::<number + 1> and 10.0.0.<number + 1>, each as RoCEv1 and
// as RoCEv2: the last, index 3, is RoCEv2 with an IPv4 address. Its name is "fake<number>".
DeviceSpec roce_device(int number);
// One InfiniBand port with LID <number + 1>.
DeviceSpec infiniband_device(int number);

struct NetworkSpec {
  uint64_t seed = 1;
  std::vector<DeviceSpec> devices = {roce_device(0)};
  // What stands for 4.096 us x 2^timeout, and for the wait after "receiver not ready".
  int retry_interval_ms = 5;
  int not_ready_interval_ms = 1;
  double datagram_loss = 0;
};

}  // namespace rdmacoll::fake
