// Wire: messages on connections, when nothing is wrong.
#include <algorithm>
#include <array>

#include "tests/fake_verbs/bytes.h"
#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/wire.h"

namespace rdmacoll::fake {
namespace {

constexpr size_t kWindow = 4;  // messages of one connection in flight
constexpr uint64_t kMostPieces = 4;

// The part of a list of local pieces that lies in one of them: from `offset`, at most `bytes`.
ibv_sge part_of(const std::vector<ibv_sge>& list, uint64_t offset, uint64_t bytes) {
  for (const ibv_sge& piece : list) {
    if (offset < piece.length) {
      const uint64_t here = std::min(bytes, piece.length - offset);
      return {piece.addr + offset, static_cast<uint32_t>(here), piece.lkey};
    }
    offset -= piece.length;
  }
  misuse("a message is longer than its pieces");
}

size_t index_of(const QueuePair& from, const Message& message) {
  return static_cast<size_t>(message.position - from.sends.front().position);
}

// Memory was deregistered under a message, at one end or the other.
ibv_wc_status fetch_error(const Message& message) {
  return message.is_read() ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR;
}
ibv_wc_status land_error(const Message& message) {
  return message.is_read() ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_ACCESS_ERR;
}

}  // namespace

// One of the moves that are possible now.
void Wire::advance(QueuePair& from) {
  std::array<void (Wire::*)(QueuePair&), 5> moves;
  size_t count = 0;
  const auto begun = from.sends.begin() + static_cast<std::ptrdiff_t>(from.begun);
  if (may_begin(from)) moves[count++] = &Wire::begin;
  if (begun_with(from, &Message::unsent) != nullptr) moves[count++] = &Wire::fetch_some;
  if (begun_with(from, &Message::on_the_wire) != nullptr) moves[count++] = &Wire::land_some;
  const auto unacknowledged =
      std::find_if(from.sends.begin(), begun, [](const Message& m) { return !m.acknowledged; });
  if (unacknowledged != begun &&
      (unacknowledged->is_read() ? unacknowledged->landed() : unacknowledged->sent())) {
    moves[count++] = &Wire::acknowledge_next;
  }
  const auto undelivered =
      std::find_if(from.sends.begin(), begun, [](const Message& m) { return !m.delivered; });
  if (undelivered != begun && undelivered->landed()) moves[count++] = &Wire::deliver_next;
  if (count > 0) (this->*moves[random(count)])(from);
}

bool Wire::may_begin(const QueuePair& from) const {
  if (from.begun == from.sends.size() || from.begun == kWindow) return false;
  const Message& next = from.sends[from.begun];
  const auto begun = from.sends.begin() + static_cast<std::ptrdiff_t>(from.begun);
  // A read comes after all that was written before it; what comes later may pass the read.
  if (next.is_read()) {
    const auto reads = std::count_if(from.sends.begin(), begun,
                                     [](const Message& m) { return m.is_read() && !m.landed(); });
    return reads < from.attributes.max_rd_atomic &&
           std::all_of(
               from.sends.begin(), begun,
               [](const Message& m) { return m.is_read() || m.landed(); });
  }
  return (next.flags & IBV_SEND_FENCE) == 0 ||
         std::none_of(from.sends.begin(), begun,
                      [](const Message& m) { return m.is_read() && !m.acknowledged; });
}

void Wire::begin(QueuePair& from) {
  QueuePair* at = registry_.partner(from);
  if (at == nullptr) return no_answer(from);
  begin_at(from, *at);
}

void Wire::begin_at(QueuePair& from, QueuePair& at) {
  Message& next = from.sends[from.begun];
  Faults& faults = registry_.device_of(from.context).faults;
  if (faults.next_status != IBV_WC_SUCCESS) {
    return refuse(from, from.begun, std::exchange(faults.next_status, IBV_WC_SUCCESS));
  }
  for (const ibv_sge& piece : next.local) {
    if (piece.length > 0 && !next.is_inline() &&
        registry_.local(piece.lkey, from.pd, piece, next.is_read()) == nullptr) {
      return refuse(from, from.begun, IBV_WC_LOC_PROT_ERR);
    }
  }
  const unsigned access = next.is_read() ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  if (next.bytes > 0) {
    if ((at.attributes.qp_access_flags & access) == 0) {
      return refuse(from, from.begun, IBV_WC_REM_INV_REQ_ERR);
    }
    if (registry_.remote(next.rkey, at.pd, next.remote_address, next.bytes, access) == nullptr) {
      return refuse(from, from.begun, IBV_WC_REM_ACCESS_ERR);
    }
  }
  if (next.takes_receive()) {
    if (at.receives.empty()) return not_ready(from);
    next.receive = std::move(at.receives.front());
    at.receives.pop_front();
  }
  from.not_ready_left.reset();
  next.at = &at;
  cut(next);
  ++from.begun;
}

// Into pieces, none of which crosses from one local piece to the next. Devices read memory by lines
// of a cache, so what a READ finds in an aligned word was there at one time.
void Wire::cut(Message& message) {
  constexpr uint64_t kWordBytes = 8;
  uint64_t most = std::max<uint64_t>(1, message.bytes / (1 + random(kMostPieces)));
  if (message.is_read()) most = (most + kWordBytes - 1) / kWordBytes * kWordBytes;
  for (uint64_t at = 0; at < message.bytes;) {
    uint64_t bytes = std::min(most, message.bytes - at);
    if (!message.is_inline()) bytes = part_of(message.local, at, bytes).length;
    message.unsent.push_back({at, bytes, {}});
    at += bytes;
  }
  std::shuffle(message.unsent.begin(), message.unsent.end(), random_);
}

Message* Wire::begun_with(QueuePair& from, std::vector<Piece> Message::* pieces) {
  std::array<Message*, kWindow> found;
  size_t count = 0;
  for (size_t i = 0; i < from.begun; ++i) {
    if (!(from.sends[i].*pieces).empty()) found[count++] = &from.sends[i];
  }
  return count > 0 ? found[random(count)] : nullptr;
}

void Wire::fetch_some(QueuePair& from) {
  if (registry_.partner(from) == nullptr) return no_answer(from);
  from.retries_left.reset();
  Message& message = *begun_with(from, &Message::unsent);
  if (!fetch(from, message)) refuse(from, index_of(from, message), fetch_error(message));
}

void Wire::land_some(QueuePair& from) {
  Message& message = *begun_with(from, &Message::on_the_wire);
  if (!land(from, message)) refuse(from, index_of(from, message), land_error(message));
}

// A piece leaves its source. False: its memory is not registered any more.
bool Wire::fetch(QueuePair& from, Message& message) {
  Piece& piece = message.unsent.back();
  std::byte* source = nullptr;
  if (message.is_inline()) {
    source = message.inline_data.data() + piece.offset;
  } else if (message.is_read()) {
    const uint64_t address = message.remote_address + piece.offset;
    const MemoryRegion* region = registry_.remote(message.rkey, message.at->pd, address,
                                                  piece.bytes, IBV_ACCESS_REMOTE_READ);
    if (region == nullptr) return false;
    source = region->at(address);
  } else {
    const ibv_sge part = part_of(message.local, piece.offset, piece.bytes);
    const MemoryRegion* region = registry_.local(part.lkey, from.pd, part, false);
    if (region == nullptr) return false;
    source = region->at(part.addr);
  }
  piece.data.resize(piece.bytes);
  device_read(piece.data.data(), source, piece.bytes);
  message.on_the_wire.push_back(std::move(piece));
  message.unsent.pop_back();
  return true;
}

// A piece is stored. False: the memory is not registered any more.
bool Wire::land(QueuePair& from, Message& message) {
  const size_t index = random(message.on_the_wire.size());
  std::swap(message.on_the_wire[index], message.on_the_wire.back());
  const Piece& piece = message.on_the_wire.back();
  std::byte* destination = nullptr;
  if (message.is_read()) {
    const ibv_sge part = part_of(message.local, piece.offset, piece.bytes);
    const MemoryRegion* region = registry_.local(part.lkey, from.pd, part, true);
    if (region == nullptr) return false;
    destination = region->at(part.addr);
  } else {
    const uint64_t address = message.remote_address + piece.offset;
    const MemoryRegion* region = registry_.remote(message.rkey, message.at->pd, address,
                                                  piece.bytes, IBV_ACCESS_REMOTE_WRITE);
    if (region == nullptr) return false;
    destination = region->at(address);
  }
  device_write(destination, piece.data.data(), piece.bytes);
  message.on_the_wire.pop_back();
  return true;
}

void Wire::acknowledge_next(QueuePair& from) {
  acknowledge(from, *std::find_if(from.sends.begin(), from.sends.end(),
                                  [](const Message& m) { return !m.acknowledged; }));
  retire(from);
}

void Wire::deliver_next(QueuePair& from) {
  deliver(*std::find_if(from.sends.begin(), from.sends.end(),
                        [](const Message& m) { return !m.delivered; }));
  retire(from);
}

// The sender is told.
void Wire::acknowledge(QueuePair& from, Message& message) {
  message.acknowledged = true;
  from.retries_left.reset();
  if (from.signal_all || (message.flags & IBV_SEND_SIGNALED) != 0) {
    complete(from, message, IBV_WC_SUCCESS);
  }
}

// The receiver is told.
void Wire::deliver(Message& message) {
  message.delivered = true;
  ++counts_.messages;
  if (!message.receive.has_value()) return;
  QueuePair& at = *message.at;
  Completion completion;
  completion.queue_pair = &at;
  completion.receive = true;
  completion.solicited = (message.flags & IBV_SEND_SOLICITED) != 0;
  completion.wc.wr_id = message.receive->id;
  completion.wc.status = IBV_WC_SUCCESS;
  completion.wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  completion.wc.byte_len = static_cast<uint32_t>(message.bytes);
  completion.wc.imm_data = message.immediate;
  completion.wc.wc_flags = IBV_WC_WITH_IMM;
  completion.wc.qp_num = at.qp_num;
  static_cast<CompletionQueue*>(at.recv_cq)->push(completion);
}

void Wire::retire(QueuePair& from) {
  while (from.begun > 0 && from.sends.front().acknowledged && from.sends.front().delivered) {
    from.sends.pop_front();
    --from.begun;
  }
}

// The first messages, to their end, at once. False: one of them has failed.
bool Wire::finish(QueuePair& from, size_t count) {
  for (; count > 0; --count) {
    Message& first = from.sends.front();
    while (!first.landed()) {
      const bool fetched = first.unsent.empty() || fetch(from, first);
      if (fetched && land(from, first)) continue;
      refuse(from, 0, fetched ? land_error(first) : fetch_error(first));
      return false;
    }
    if (!first.acknowledged) acknowledge(from, first);
    if (!first.delivered) deliver(first);
    retire(from);
  }
  return true;
}

}  // namespace rdmacoll::fake
