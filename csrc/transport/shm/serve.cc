// ShmTransport: what set-up does whenever somebody looks: it accepts, and hears what has come.
// Floor: transport/shm. Thread: set-up; under the mutex.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "csrc/transport/shm/transport.h"

namespace rdmacoll {
namespace {

// A process that connects again and again must not keep this one from its deadline, nor use up its
// descriptors by connections on which it says nothing.
constexpr int kAcceptsAtOnce = 32;
constexpr size_t kMaxPendingHandshakes = 256;

// When one looks again without being woken: at callers for whom there was no descriptor, and at
// peers whose sockets were full.
constexpr int64_t kNoDescriptorNs = 50'000'000;
constexpr int64_t kBlockedNs = 2'000'000;

}  // namespace

void ShmTransport::serve(SetUpReport& report) {
  const std::lock_guard lock(mutex_);
  look();
  news_.take(report);
}

void ShmTransport::look() {
  news_.begin_look();
  epoll_event events[32];
  const int count = ::epoll_wait(setup_set_.get(), events, std::size(events), 0);
  for (int i = 0; i < count; ++i) {
    const WatchTag tag = WatchTag::unpack(events[i].data.u64);
    if (tag.what == Watched::Handshake) hear_handshake(static_cast<int>(tag.index));
    if (tag.what == Watched::PeerSocket) hear_peer(peers_.at(tag.index));
  }
  accept_callers();
  std::erase_if(blocked_, [&](PeerId id) {
    Result<bool> sent = send_unsent(peers_.at(id));
    return sent.ok() && sent.value();
  });
  if (!blocked_.empty()) news_.look_again_in_ns(kBlockedNs);
}

// The listener is watched by edges: callers for whom there is no descriptor wake once.
void ShmTransport::accept_callers() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    PeerSocket caller = PeerSocket::accept(listener_);
    if (!caller.valid()) {
      if (errno != EAGAIN) news_.look_again_in_ns(kNoDescriptorNs);
      return;
    }
    // Whoever cannot be answered is not let in; the side that wants to meet me notices by its
    // socket's end and says so. One that has hung up by then only looked whether I listen.
    const Status status = say_hello(std::move(caller), nullptr);
    if (!status.ok() && status.code() != StatusCode::PeerFailed)
      unmet_.note_turned_away(status.message());
    if (handshakes_.size() > kMaxPendingHandshakes) drop_the_oldest();
  }
  news_.look_again_in_ns(0);
}

// The oldest of those that have dialled me. An honest one dials again.
void ShmTransport::drop_the_oldest() {
  const auto oldest = std::find_if(handshakes_.begin(), handshakes_.end(),
                                   [](const Handshake& handshake) { return !handshake.dialled; });
  if (oldest == handshakes_.end()) return;
  unwatch(setup_set_, oldest->socket.fd());
  handshakes_.erase(oldest);
}

}  // namespace rdmacoll
