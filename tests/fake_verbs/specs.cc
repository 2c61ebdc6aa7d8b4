// The devices that most tests use.
#include "tests/fake_verbs/specs.h"

#include <algorithm>

namespace rdmacoll::fake {
namespace {

ibv_gid_entry entry(const ibv_gid& gid, ibv_gid_type type) {
  ibv_gid_entry made{};
  made.gid = gid;
  made.gid_type = type;
  return made;
}

ibv_gid link_local(int number) {
  ibv_gid gid{};
  gid.raw[0] = 0xfe;
  gid.raw[1] = 0x80;
  gid.raw[15] = static_cast<uint8_t>(number + 1);
  return gid;
}

ibv_gid ipv4(int number) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 10;
  gid.raw[15] = static_cast<uint8_t>(number + 1);
  return gid;
}

DeviceSpec device(int number) {
  DeviceSpec spec;
  spec.name = "fake" + std::to_string(number);
  spec.limits.max_mr_size = uint64_t{1} << 40;
  spec.limits.max_qp = 1 << 16;
  spec.limits.max_qp_wr = 1 << 12;
  spec.limits.max_sge = 4;
  spec.limits.max_cq = 1 << 12;
  spec.limits.max_cqe = 1 << 18;
  spec.limits.max_mr = 1 << 16;
  spec.limits.max_pd = 1 << 10;
  spec.limits.max_qp_rd_atom = 16;
  spec.limits.max_qp_init_rd_atom = 8;
  spec.limits.max_ah = 1 << 16;
  spec.limits.phys_port_cnt = 1;
  return spec;
}

}  // namespace

DeviceSpec roce_device(int number) {
  DeviceSpec spec = device(number);
  PortSpec port;
  for (const ibv_gid& gid : {link_local(number), ipv4(number)}) {
    port.gids.push_back(entry(gid, IBV_GID_TYPE_ROCE_V1));
    port.gids.push_back(entry(gid, IBV_GID_TYPE_ROCE_V2));
  }
  spec.ports.push_back(port);
  return spec;
}

DeviceSpec infiniband_device(int number) {
  DeviceSpec spec = device(number);
  PortSpec port;
  port.ethernet = false;
  port.lid = static_cast<uint16_t>(number + 1);
  port.mtu = IBV_MTU_4096;
  port.gids.push_back(entry(link_local(number), IBV_GID_TYPE_IB));
  spec.ports.push_back(port);
  return spec;
}

}  // namespace rdmacoll::fake
