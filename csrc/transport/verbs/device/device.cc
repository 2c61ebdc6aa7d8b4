// Device: finds the devices of the host, opens the one that is chosen (device_choice.h), and reads
// how its port is reached. Floor: transport/verbs/device.
#include "csrc/transport/verbs/device/device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "csrc/base/log.h"
#include "csrc/transport/verbs/device/device_choice.h"
#include "csrc/transport/verbs/device/errors.h"
#include "csrc/transport/verbs/device/nearness.h"

namespace rdmacoll {
namespace {

using verbs::Candidate;
using verbs::HcaList;
using verbs::Nearness;

constexpr int kGidsMax = 256;  // an address vector holds the index in 8 bits

int mtu_bytes(int mtu) { return 128 << mtu; }  // of an ibv_mtu

class DeviceList {
 public:
  explicit DeviceList(const VerbsTable& table)
      : table_(table), devices_(table.get_device_list(&count_)) {}
  ~DeviceList() {
    if (devices_ != nullptr) table_.free_device_list(devices_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  ibv_device** begin() const { return devices_; }
  ibv_device** end() const { return devices_ == nullptr ? nullptr : devices_ + count_; }
  bool empty() const { return begin() == end(); }

 private:
  const VerbsTable& table_;
  int count_ = 0;
  ibv_device** devices_;
};

// The regions are shared mappings, which fork() leaves alone; the queues of a driver need not be.
// On Linux from 5.12 on they are safe, and this call does nothing. Not two at once: the library
// looks whether it was called without a lock.
void prepare_for_fork(const VerbsTable& table, LogLevel level) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const int error = table.fork_init(); error != 0) {
    Log(level, "verbs")
        .write(LogLevel::Warn, std::string("ibv_fork_init: ") + std::strerror(error) +
                                   ": a process that forks (DataLoader workers) may lose its RDMA "
                                   "queues; join the group before anything else uses RDMA");
  }
}

std::string device_problem(const ibv_device& device, bool admitted, const std::string& hca) {
  if (!admitted) return "is excluded by RDMACOLL_HCA='" + hca + "'";
  if (device.transport_type != IBV_TRANSPORT_IB) {
    return "is neither InfiniBand nor RoCE, and has no reliable connections";
  }
  return "";
}

// The ports of an open device.
std::vector<Candidate> candidates_of(const VerbsTable& table, const Device& device,
                                     const HcaList& admitted, const VerbsConfig& config,
                                     const Nearness& nearness) {
  std::vector<Candidate> candidates;
  for (int port = 1; port <= device.limits().phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    Candidate candidate{device.name(), port, nearness.distance_of(device.name()), ""};
    if (!admitted.admits(device.name(), port)) {
      candidate.problem = "is excluded by RDMACOLL_HCA='" + config.hca + "'";
    } else if (config.port != 0 && config.port != port) {
      candidate.problem = "is excluded by RDMACOLL_IB_PORT=" + std::to_string(config.port);
    } else if (const int error =
                   table.query_port(device.context(), static_cast<uint8_t>(port), &attributes);
               error != 0) {
      candidate.problem = std::string("cannot be queried: ") + std::strerror(error);
    } else {
      candidate.problem = verbs::port_problem(attributes);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const VerbsTable& table, const Config& config) {
  auto settings = VerbsConfig::read(config.settings);
  if (!settings.ok()) return settings.status();
  const VerbsConfig& verbs = settings.value();
  auto admitted = HcaList::parse(verbs.hca);
  if (!admitted.ok()) return admitted.status();
  prepare_for_fork(table, config.log_level);
  const DeviceList list(table);
  if (list.empty()) {
    return Status(StatusCode::Unsupported,
                  "this host has no RDMA device that libibverbs knows (ibv_devices lists them): "
                  "load the device's kernel module and ib_uverbs, install ibverbs-providers, and "
                  "in a container pass --device=/dev/infiniband; a software device: rdma link add "
                  "rxe0 type rxe netdev <interface>");
  }
  const Nearness nearness = Nearness::of_calling_thread();
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Candidate> candidates;
  for (ibv_device* device : list) {
    const std::string name = table.get_device_name(device);
    std::string problem = device_problem(*device, admitted.value().admits(name, 0), verbs.hca);
    if (problem.empty()) {
      auto opened = open_one(table, device);
      if (opened.ok()) {
        devices.push_back(opened.take());
        const auto ports = candidates_of(table, *devices.back(), admitted.value(), verbs, nearness);
        candidates.insert(candidates.end(), ports.begin(), ports.end());
        continue;
      }
      problem = opened.status().message();
    }
    candidates.push_back({name, 0, 0, std::move(problem)});
  }
  auto index = verbs::choose_candidate(candidates, config.place.local_rank);
  if (!index.ok()) return index.status();
  const Candidate& chosen = candidates[index.value()];
  const auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const auto& open) { return open->name() == chosen.device; });
  RDMACOLL_RETURN_IF_ERROR((*device)->use_port(chosen.port, verbs));
  (*device)->reason_ = verbs::explain_choice(candidates, index.value());
  return std::move(*device);
}

Result<std::unique_ptr<Device>> Device::open_one(const VerbsTable& table, ibv_device* device) {
  ibv_context* context = table.open_device(device);
  if (context == nullptr) {
    return Status::from_errno(
        "cannot be opened (are /dev/infiniband/uverbs* there, and open to this user? in a "
        "container: --device=/dev/infiniband)",
        errno);
  }
  std::unique_ptr<Device> opened(new Device(table, context));
  opened->name_ = table.get_device_name(device);
  if (const int error = table.query_device(context, &opened->limits_); error != 0) {
    return Status::from_errno("cannot be queried", error);
  }
  return opened;
}

Device::~Device() {
  if (pd_ != nullptr) table_.dealloc_pd(pd_);
  table_.close_device(context_);
}

Status Device::use_port(int port, const VerbsConfig& config) {
  port_ = static_cast<uint8_t>(port);
  const std::string where = name_ + " port " + std::to_string(port);
  ibv_port_attr attributes{};
  if (const int error = table_.query_port(context_, port_, &attributes); error != 0) {
    return Status::from_errno("querying " + where, error);
  }
  address_.is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  address_.lid = address_.is_ethernet ? 0 : attributes.lid;
  address_.mtu = static_cast<uint8_t>(attributes.active_mtu);
  auto gid = verbs::choose_gid(gids(attributes.gid_tbl_len), address_.is_ethernet, config.gid_index,
                               where);
  if (!gid.ok()) return gid.status();
  gid_index_ = static_cast<int>(gid.value().gid_index);
  address_.gid = gid.value().gid;
  RDMACOLL_RETURN_IF_ERROR(set_mtu(config.mtu_bytes));
  pd_ = table_.alloc_pd(context_);
  if (pd_ == nullptr) return call_error("allocating a protection domain", errno, *this);
  return Status();
}

Status Device::set_mtu(int64_t wanted_bytes) {
  if (wanted_bytes == 0) return Status();
  if (wanted_bytes > mtu_bytes(address_.mtu)) {
    return Status(StatusCode::InvalidArgument,
                  "RDMACOLL_IB_MTU=" + std::to_string(wanted_bytes) +
                      " is more than the active MTU of " + describe() + ", " +
                      std::to_string(mtu_bytes(address_.mtu)) +
                      " bytes; unset it, or raise the MTU of the network interface (ip link set "
                      "<interface> mtu 4200) and of the switch");
  }
  while (mtu_bytes(address_.mtu) > wanted_bytes) --address_.mtu;
  return Status();
}

std::vector<ibv_gid_entry> Device::gids(int count) const {
  std::vector<ibv_gid_entry> found;
  for (int index = 0; index < std::min(count, kGidsMax); ++index) {
    ibv_gid_entry entry{};
    const int error = table_.query_gid_ex(context_, port_, static_cast<uint32_t>(index), &entry, 0,
                                          sizeof(entry));
    if (error == 0) found.push_back(entry);  // else there is none at this index
  }
  return found;
}

std::string Device::describe() const {
  const std::string where = name_ + " port " + std::to_string(port_);
  if (!address_.is_ethernet)
    return where + " (InfiniBand, LID " + std::to_string(address_.lid) + ")";
  return where + " (RoCE, GID " + std::to_string(gid_index_) + " = " +
         verbs::text_of(address_.gid) + ")";
}

}  // namespace rdmacoll
