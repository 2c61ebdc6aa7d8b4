// Mail. Floor: engine.
#include "csrc/engine/mail.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "csrc/engine/p2p/p2p.h"

namespace rdmacoll {
namespace {

constexpr int32_t kHeadTag = 0;
constexpr int32_t kPieceTag = 1;
// What waits for a message has no limit of its own: nobody knows when the next one is sent.
constexpr int64_t kForEverMs = int64_t{1} << 42;

struct MailHead {
  uint64_t bytes = 0;  // of the whole message
  std::array<std::byte, kEnvelopeBytes - sizeof(uint64_t)> first{};
};
static_assert(sizeof(MailHead) == kEnvelopeBytes);

}  // namespace

// What is received of a message, and from whom.
struct Mail::Incoming {
  uint32_t rank = 0;
  MailHead head{};
  uint64_t left = 0;  // of the message whose head has come
  size_t piece = 0;   // of these, what is being received
  Bytes message{};

  MutableBuffer room() {
    if (left == 0) return {&head, sizeof(head)};
    piece = std::min<uint64_t>(left, kPieceBytes);
    message.resize(message.size() + piece);
    return {message.data() + message.size() - piece, piece};
  }
  // Whether the message is here.
  bool take() {
    if (left > 0) {
      left -= piece;
    } else {
      const size_t here = std::min<uint64_t>(head.bytes, head.first.size());
      message.assign(head.first.data(), head.first.data() + here);
      left = head.bytes - here;
    }
    return left == 0;
  }
};

// What callbacks hold: they may be in the middle of it when the mail and its communicator go.
class Mail::Listening : public std::enable_shared_from_this<Listening> {
 public:
  Listening(Communicator& communicator, Told told)
      : communicator_(communicator), told_(std::move(told)) {}

  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
  }

  // A loop, as what has come already is told in this thread: by itself it would call itself as
  // often.
  void receive(const std::shared_ptr<Incoming>& incoming) {
    while (true) {
      Result<WorkPtr> work = start(*incoming);
      if (!work.ok()) return tell(*incoming, work.status());
      if (!work.value()->done()) {
        work.value()->on_done([self = shared_from_this(), incoming](const Status& status) {
          if (self->take(*incoming, status)) self->receive(incoming);
        });
        return;
      }
      if (!take(*incoming, work.value()->status())) return;
    }
  }

 private:
  // Under the lock, so that the communicator is there; it runs no callback here.
  Result<WorkPtr> start(Incoming& incoming) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_ended_) return Status(StatusCode::Aborted, "nobody listens any more");
    const int32_t tag = incoming.left == 0 ? kHeadTag : kPieceTag;
    return communicator_.recv(incoming.room(), static_cast<int>(incoming.rank), tag,
                              {.timeout_ms = kForEverMs});
  }
  // Whether more is to come.
  bool take(Incoming& incoming, const Status& status) {
    if (!status.ok() || incoming.take()) tell(incoming, status);
    return status.ok();
  }
  void tell(const Incoming& incoming, const Status& status) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (has_ended_) return;
    }
    told_(
        incoming.rank, status,
        status.ok() ? std::span<const std::byte>(incoming.message) : std::span<const std::byte>());
  }

  Communicator& communicator_;
  const Told told_;
  std::mutex mutex_;  // has_ended_, and the communicator's life
  bool has_ended_ = false;
};

Mail::Mail(Communicator& communicator, Told told)
    : communicator_(communicator),
      listening_(std::make_shared<Listening>(communicator, std::move(told))) {}

Mail::~Mail() { listening_->end(); }

void Mail::listen_to(uint32_t rank) {
  auto incoming = std::make_shared<Incoming>();
  incoming->rank = rank;
  const std::shared_ptr<Listening> listening = listening_;  // what is told may end this
  listening->receive(incoming);
}

Status Mail::send(uint32_t rank, std::shared_ptr<const Bytes> message) {
  auto head = std::make_shared<MailHead>();
  head->bytes = message->size();
  const size_t here = std::min(message->size(), head->first.size());
  std::copy_n(message->begin(), here, head->first.begin());
  const int to = static_cast<int>(rank);
  Result<WorkPtr> sent = communicator_.send({head.get(), sizeof(MailHead)}, to, kHeadTag);
  if (!sent.ok()) return sent.status();
  if (!sent.value()->done()) sent.value()->on_done([head](const Status&) {});
  for (size_t at = here; at < message->size(); at += kPieceBytes) {
    const size_t piece = std::min(message->size() - at, kPieceBytes);
    sent = communicator_.send({message->data() + at, piece}, to, kPieceTag);
    if (!sent.ok()) return sent.status();
    if (!sent.value()->done()) sent.value()->on_done([message](const Status&) {});
  }
  return Status();
}

}  // namespace rdmacoll
