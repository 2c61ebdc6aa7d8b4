// What the device reports, in words. Floor: transport/verbs/device.
#include "csrc/transport/verbs/device/errors.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace rdmacoll {
namespace {

struct Meaning {
  ibv_wc_status status;
  const char* name;
  StatusCode code;  // System: this side is at fault
  const char* text;
};

constexpr Meaning kMeanings[] = {
    {IBV_WC_LOC_LEN_ERR, "IBV_WC_LOC_LEN_ERR", StatusCode::System,
     "a message does not fit where it was to go; this is an error in rdmacoll"},
    {IBV_WC_LOC_QP_OP_ERR, "IBV_WC_LOC_QP_OP_ERR", StatusCode::System,
     "the device of this host could not send; its link is down, or its address has changed "
     "(ip link, rdma link show)"},
    {IBV_WC_LOC_PROT_ERR, "IBV_WC_LOC_PROT_ERR", StatusCode::System,
     "the device of this host may not read the memory it was to send; this is an error in "
     "rdmacoll"},
    {IBV_WC_WR_FLUSH_ERR, "IBV_WC_WR_FLUSH_ERR", StatusCode::PeerFailed,
     "what was still to be sent or received was dropped, because the connection had broken before: "
     "the peer broke its protocol, or its process has ended; its own error says more"},
    {IBV_WC_BAD_RESP_ERR, "IBV_WC_BAD_RESP_ERR", StatusCode::PeerFailed,
     "the peer's device answered with something else than was asked for; check the firmware and "
     "the RDMACOLL_IB_* settings of both hosts"},
    {IBV_WC_LOC_ACCESS_ERR, "IBV_WC_LOC_ACCESS_ERR", StatusCode::System,
     "the peer wrote to memory that this process does not lend"},
    {IBV_WC_REM_INV_REQ_ERR, "IBV_WC_REM_INV_REQ_ERR", StatusCode::PeerFailed,
     "the peer's device refuses the request as invalid; both sides must run the same rdmacoll, "
     "and RDMACOLL_IB_MTU must be the same on both"},
    {IBV_WC_REM_ACCESS_ERR, "IBV_WC_REM_ACCESS_ERR", StatusCode::PeerFailed,
     "the peer's device refuses the key of the memory: the peer's process has ended, or has "
     "released the memory"},
    {IBV_WC_REM_OP_ERR, "IBV_WC_REM_OP_ERR", StatusCode::PeerFailed,
     "the peer's device could not carry out the request; its process is ending, or its host is in "
     "trouble (dmesg there)"},
    {IBV_WC_RETRY_EXC_ERR, "IBV_WC_RETRY_EXC_ERR", StatusCode::PeerFailed, nullptr},
    {IBV_WC_RNR_RETRY_EXC_ERR, "IBV_WC_RNR_RETRY_EXC_ERR", StatusCode::PeerFailed,
     "the peer was not ready to receive, try after try; this is an error in rdmacoll"},
    {IBV_WC_REM_INV_RD_REQ_ERR, "IBV_WC_REM_INV_RD_REQ_ERR", StatusCode::PeerFailed,
     "the peer's device refuses the read as invalid; both sides must run the same rdmacoll"},
    {IBV_WC_REM_ABORT_ERR, "IBV_WC_REM_ABORT_ERR", StatusCode::PeerFailed,
     "the peer's device gave the request up; its process is ending, or its device was reset"},
    {IBV_WC_FATAL_ERR, "IBV_WC_FATAL_ERR", StatusCode::System,
     "the device of this host has failed; see dmesg"},
    {IBV_WC_RESP_TIMEOUT_ERR, "IBV_WC_RESP_TIMEOUT_ERR", StatusCode::PeerFailed,
     "the peer's device did not answer in time; the peer's process or host is gone, or the link "
     "is down"},
    {IBV_WC_GENERAL_ERR, "IBV_WC_GENERAL_ERR", StatusCode::System,
     "the device of this host failed in a way of its own; see dmesg"},
};

constexpr Meaning kUnknown = {IBV_WC_GENERAL_ERR, "a completion status", StatusCode::System,
                              "reliable connections do not have it; see dmesg"};

const Meaning& meaning_of(ibv_wc_status status) {
  const auto* found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                   [&](const Meaning& m) { return m.status == status; });
  return found == std::end(kMeanings) ? kUnknown : *found;
}

std::string no_answer(const VerbsConfig& config) {
  char text[64];
  std::snprintf(text, sizeof(text), "no answer after %d tries in about %.2g s",
                static_cast<int>(config.retry_count + 1), config.no_answer_s());
  return text +
         std::string(
             "; the peer's process or host is gone, a link between is down, the peer's GID cannot "
             "be reached from here (RDMACOLL_GID_INDEX; on RoCE try ping between the addresses), "
             "or the network drops packets (RoCE without PFC or ECN). RDMACOLL_IB_TIMEOUT=") +
         std::to_string(config.timeout_exponent) +
         " and RDMACOLL_IB_RETRY_CNT=" + std::to_string(config.retry_count) +
         " say how long to try; one more of the former doubles it";
}

std::string place_of(const Device& device) {
  return device.name() + " port " + std::to_string(device.port());
}

// Whether the limit on locked memory does not hold for this process.
bool may_lock_memory() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, sets) == 0 &&
         (sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

// What to do where the kernel did not lock memory for the device; empty: its limit is not why.
std::string memlock_remedy(int error) {
  rlimit limit{};
  if (error != ENOMEM || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "";
  if (limit.rlim_cur == RLIM_INFINITY || may_lock_memory()) return "";
  return ". This process may lock " + std::to_string(limit.rlim_cur) +
         " bytes of memory (ulimit -l), and RDMA needs all that the device reads or writes locked: "
         "put \"* soft memlock unlimited\" and \"* hard memlock unlimited\" into "
         "/etc/security/limits.conf and log in again; for a service LimitMEMLOCK=infinity, for "
         "docker --ulimit memlock=-1";
}

}  // namespace

Status completion_error(const ibv_wc& completion, const std::string& peer, const Device& device,
                        const VerbsConfig& config) {
  const Meaning& meaning = meaning_of(completion.status);
  std::string text = "the connection to " + peer + " over " + place_of(device) +
                     " broke: " + meaning.name + " (" + std::to_string(completion.status) +
                     "): " + (meaning.text == nullptr ? no_answer(config) : meaning.text);
  if (completion.vendor_err != 0) {
    text += " (the device's own code: " + std::to_string(completion.vendor_err) + ")";
  }
  return Status(meaning.code, text);
}

Status stands_still(const std::string& peer, const Device& device, int64_t seconds) {
  return Status(StatusCode::PeerFailed,
                "the connection to " + peer + " over " + place_of(device) + " stands still: for " +
                    std::to_string(seconds) +
                    " s the device of this host has done nothing of what it was to send there, nor "
                    "said that there is no answer. Soft-RoCE is known to do so, after its packets "
                    "were late: a larger RDMACOLL_IB_TIMEOUT makes that rarer. Of another device "
                    "dmesg may say more");
}

Status registration_error(int error, uint64_t bytes, const Device& device) {
  return call_error("registering " + std::to_string(bytes) + " bytes of memory", error, device);
}

Status call_error(const std::string& tried, int error, const Device& device) {
  return Status(StatusCode::System, tried + " on " + device.describe() +
                                        " failed: " + std::strerror(error) + memlock_remedy(error));
}

}  // namespace rdmacoll
