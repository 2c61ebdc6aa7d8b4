// Asynchronous events of the device, in words. Floor: transport/verbs/device.
#include "csrc/transport/verbs/device/errors.h"

namespace rdmacoll {
namespace {

// "queue pair 17 of rxe0", "rxe0 port 1" or "rxe0": what the event is about.
std::string subject_of(const ibv_async_event& event, const Device& device) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return "queue pair " + std::to_string(event.element.qp->qp_num) + " of " + device.name();
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return device.name() + " port " + std::to_string(event.element.port_num);
    default:
      return device.name();
  }
}

const char* meaning_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return "IBV_EVENT_CQ_ERR: a completion queue has overflowed or failed; nothing completes any "
             "more";
    case IBV_EVENT_QP_FATAL:
      return "IBV_EVENT_QP_FATAL: it has failed in the device";
    case IBV_EVENT_QP_REQ_ERR:
      return "IBV_EVENT_QP_REQ_ERR: the peer sent a request that is invalid";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "IBV_EVENT_QP_ACCESS_ERR: the peer reached for memory that this process does not lend "
             "it";
    case IBV_EVENT_DEVICE_FATAL:
      return "IBV_EVENT_DEVICE_FATAL: the device has failed, and all its connections with it; see "
             "dmesg, and reset or replace it";
    case IBV_EVENT_PORT_ACTIVE:
      return "IBV_EVENT_PORT_ACTIVE: the link is up";
    case IBV_EVENT_PORT_ERR:
      return "IBV_EVENT_PORT_ERR: the link is down; connections break unless it returns before "
             "their retries end (RDMACOLL_IB_TIMEOUT). Check the cable, the switch and the network "
             "interface (ip link)";
    case IBV_EVENT_LID_CHANGE:
      return "IBV_EVENT_LID_CHANGE: the subnet manager gave the port another LID; connections to "
             "the old one break";
    case IBV_EVENT_PKEY_CHANGE:
      return "IBV_EVENT_PKEY_CHANGE: its partition keys have changed";
    case IBV_EVENT_SM_CHANGE:
      return "IBV_EVENT_SM_CHANGE: another subnet manager has taken over";
    case IBV_EVENT_CLIENT_REREGISTER:
      return "IBV_EVENT_CLIENT_REREGISTER: the subnet manager has restarted";
    case IBV_EVENT_GID_CHANGE:
      return "IBV_EVENT_GID_CHANGE: its addresses have changed; connections to one that is gone "
             "break";
    default:
      return nullptr;
  }
}

}  // namespace

std::string describe_event(const ibv_async_event& event, const Device& device) {
  const char* meaning = meaning_of(event.event_type);
  return subject_of(event, device) + " reports " +
         (meaning == nullptr ? "event " + std::to_string(event.event_type) : meaning);
}

// A link that is down is not the end: it may return while the connections still try.
Gravity gravity_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
      return Gravity::Fatal;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
      return Gravity::Trouble;
    default:
      return Gravity::Notice;
  }
}

}  // namespace rdmacoll
