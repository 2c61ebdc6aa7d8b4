// Wire: datagrams. They overtake each other, and are lost on the way, or where no receive waits.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/fake_verbs/bytes.h"
#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/wire.h"

namespace rdmacoll::fake {
namespace {

constexpr size_t kGrhBytes = 40;
constexpr std::byte kGrhFill{0xAB};    // users find no sense there
constexpr uint64_t kLongestWay = 200;  // moves

}  // namespace

void Wire::send_datagram(QueuePair& from) {
  const Message message = std::move(from.sends.front());
  from.sends.pop_front();
  --message.to->messages;
  Datagram datagram{nullptr, message.number, message.key, from.qp_num, 0, message.inline_data};
  for (const ibv_sge& piece : message.local) {
    if (message.is_inline() || piece.length == 0) continue;
    const MemoryRegion* region = registry_.local(piece.lkey, from.pd, piece, false);
    if (region == nullptr) {
      complete(from, message, IBV_WC_LOC_PROT_ERR);
      return end(from);
    }
    const size_t before = datagram.data.size();
    datagram.data.resize(before + piece.length);
    device_read(datagram.data.data() + before, region->at(piece.addr), piece.length);
  }
  if (from.signal_all || (message.flags & IBV_SEND_SIGNALED) != 0) {
    complete(from, message, IBV_WC_SUCCESS);
  }
  ++counts_.datagrams;
  const Port& port = registry_.port_of(from);
  datagram.to = registry_.behind(message.to->vector, port);
  datagram.not_before = moves_ + random(kLongestWay);
  if (datagram.to == nullptr || !port.active() || chance(datagram_loss_)) {
    ++counts_.datagrams_lost;
  } else {
    datagrams_.push_back(std::move(datagram));
  }
}

// False: none is due.
bool Wire::move_datagram() {
  const auto due = std::find_if(datagrams_.begin(), datagrams_.end(),
                                [&](const Datagram& next) { return next.not_before <= moves_; });
  if (due == datagrams_.end()) return false;
  const Datagram datagram = std::move(*due);
  datagrams_.erase(due);
  receive_datagram(datagram);
  return true;
}

void Wire::receive_datagram(const Datagram& datagram) {
  const auto found = datagram.to->device->queue_pairs.find(datagram.number);
  const bool there = datagram.to->active() && found != datagram.to->device->queue_pairs.end() &&
                     found->second->qp_type == IBV_QPT_UD && found->second->receiving() &&
                     found->second->attributes.port_num == datagram.to->number &&
                     found->second->attributes.qkey == datagram.key &&
                     !found->second->receives.empty();
  if (!there) {
    ++counts_.datagrams_lost;
    return;
  }
  QueuePair& at = *found->second;
  const Receive receive = std::move(at.receives.front());
  at.receives.pop_front();
  std::vector<std::byte> bytes(kGrhBytes + datagram.data.size(), kGrhFill);
  std::copy(datagram.data.begin(), datagram.data.end(), bytes.begin() + kGrhBytes);
  Completion completion;
  completion.queue_pair = &at;
  completion.receive = true;
  completion.wc.wr_id = receive.id;
  completion.wc.status = IBV_WC_SUCCESS;
  completion.wc.opcode = IBV_WC_RECV;
  completion.wc.byte_len = static_cast<uint32_t>(bytes.size());
  completion.wc.wc_flags = IBV_WC_GRH;
  completion.wc.qp_num = at.qp_num;
  completion.wc.src_qp = datagram.from;
  size_t done = 0;
  for (const ibv_sge& piece : receive.pieces) {
    const MemoryRegion* region = registry_.local(piece.lkey, at.pd, piece, true);
    if (region == nullptr) completion.wc.status = IBV_WC_LOC_PROT_ERR;
    if (region == nullptr) break;
    const size_t here = std::min<size_t>(piece.length, bytes.size() - done);
    device_write(region->at(piece.addr), bytes.data() + done, here);
    done += here;
  }
  if (done < bytes.size() && completion.wc.status == IBV_WC_SUCCESS) {
    completion.wc.status = IBV_WC_LOC_LEN_ERR;
  }
  static_cast<CompletionQueue*>(at.recv_cq)->push(completion);
  if (completion.wc.status != IBV_WC_SUCCESS) end(at);
}

}  // namespace rdmacoll::fake
