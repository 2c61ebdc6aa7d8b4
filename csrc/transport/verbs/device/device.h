// Device: the RDMA device, port and address that this process uses, opened.
// Floor: transport/verbs/device. Thread: any; fixed once open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/transport/verbs/device/table.h"
#include "csrc/transport/verbs/settings/settings.h"

namespace rdmacoll {

// How a queue pair is reached.
struct PortAddress {
  ibv_gid gid{};
  uint16_t lid = 0;         // 0 on Ethernet
  uint8_t mtu = 0;          // ibv_mtu
  bool is_ethernet = true;  // RoCE: by GID; InfiniBand: by LID within a subnet
};

class Device {
 public:
  // Chooses by config.verbs and nearness (device_choice.h). Unsupported: none is usable; the
  // message lists each device and what is wrong with it. InvalidArgument: a setting does not fit
  // the device. The table must outlive the device.
  static Result<std::unique_ptr<Device>> open(const VerbsTable& table, const Config& config);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& name() const { return name_; }
  uint8_t port() const { return port_; }
  int gid_index() const { return gid_index_; }
  const PortAddress& address() const { return address_; }
  const ibv_device_attr& limits() const { return limits_; }
  ibv_context* context() const { return context_; }
  ibv_pd* pd() const { return pd_; }
  // For people: "mlx5_0 port 1 (RoCE, GID 3 = 10.0.0.1)".
  std::string describe() const;
  // Why this one, and why none of the others.
  const std::string& reason() const { return reason_; }

 private:
  Device(const VerbsTable& table, ibv_context* context) : table_(table), context_(context) {}
  static Result<std::unique_ptr<Device>> open_one(const VerbsTable& table, ibv_device* device);
  // Makes ready what a process uses of the port.
  Status use_port(int port, const VerbsConfig& config);
  Status set_mtu(int64_t wanted_bytes);
  std::vector<ibv_gid_entry> gids(int count) const;

  const VerbsTable& table_;
  ibv_context* context_;
  ibv_pd* pd_ = nullptr;
  std::string name_;
  std::string reason_;
  uint8_t port_ = 1;
  int gid_index_ = 0;
  PortAddress address_;
  ibv_device_attr limits_{};
};

}  // namespace rdmacoll
