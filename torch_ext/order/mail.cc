// Mail. Floor: torch_ext/order.
#include "torch_ext/order/mail.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "csrc/engine/p2p/p2p.h"

namespace rdmacoll::torch_ext {
namespace {

constexpr int32_t kHeadTag = 0;
constexpr int32_t kRestTag = 1;
// What waits for a message has no limit of its own: nobody knows when the next name is submitted.
constexpr int64_t kForEverMs = int64_t{1} << 42;

struct Head {
  uint32_t bytes = 0;  // of the whole message
  std::array<std::byte, kEnvelopeBytes - sizeof(uint32_t)> first{};
};
static_assert(sizeof(Head) == kEnvelopeBytes);

}  // namespace

// What is received of a message, and from whom.
struct Mail::Incoming {
  std::weak_ptr<Mail> mail;
  uint32_t rank = 0;
  Head head{};
  bool has_head = false;
  Bytes message{};
};

void Mail::listen_to(uint32_t rank) {
  auto incoming = std::make_shared<Incoming>();
  incoming->mail = weak_from_this();
  incoming->rank = rank;
  receive(std::move(incoming));
}

// A loop, as what has come already is told in this thread: by itself it would call itself as often.
void Mail::receive(std::shared_ptr<Incoming> incoming) {
  while (true) {
    MutableBuffer to{&incoming->head, sizeof(Head)};
    if (incoming->has_head) {
      const size_t here = incoming->head.first.size();
      to = {incoming->message.data() + here, incoming->message.size() - here};
    }
    Result<WorkPtr> work =
        communicator_.recv(to, static_cast<int>(incoming->rank),
                           incoming->has_head ? kRestTag : kHeadTag, {.timeout_ms = kForEverMs});
    if (!work.ok()) return told_(incoming->rank, work.status(), {});
    if (!work.value()->done()) {
      work.value()->on_done([incoming](const Status& status) {
        const std::shared_ptr<Mail> mail = incoming->mail.lock();
        if (mail != nullptr && mail->take(*incoming, status)) mail->receive(incoming);
      });
      return;
    }
    if (!take(*incoming, work.value()->status())) return;
  }
}

// Whether more is to come.
bool Mail::take(Incoming& incoming, const Status& status) {
  if (!status.ok()) {
    told_(incoming.rank, status, {});
    return false;
  }
  if (!incoming.has_head) {
    incoming.message.resize(incoming.head.bytes);
    const size_t here = std::min(incoming.message.size(), incoming.head.first.size());
    std::memcpy(incoming.message.data(), incoming.head.first.data(), here);
    incoming.has_head = here < incoming.message.size();
    if (incoming.has_head) return true;
  }
  incoming.has_head = false;
  told_(incoming.rank, Status(), incoming.message);
  return true;
}

Status Mail::send(uint32_t rank, std::shared_ptr<const Bytes> message) {
  auto head = std::make_shared<Head>();
  head->bytes = static_cast<uint32_t>(message->size());
  const size_t here = std::min(message->size(), head->first.size());
  std::memcpy(head->first.data(), message->data(), here);
  const int to = static_cast<int>(rank);
  Result<WorkPtr> sent = communicator_.send({head.get(), sizeof(Head)}, to, kHeadTag);
  if (!sent.ok()) return sent.status();
  if (!sent.value()->done()) sent.value()->on_done([head](const Status&) {});
  if (here == message->size()) return Status();
  sent = communicator_.send({message->data() + here, message->size() - here}, to, kRestTag);
  if (!sent.ok()) return sent.status();
  if (!sent.value()->done()) sent.value()->on_done([message](const Status&) {});
  return Status();
}

}  // namespace rdmacoll::torch_ext
