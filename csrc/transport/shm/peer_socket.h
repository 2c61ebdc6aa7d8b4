// PeerSocket: the unix socket between two processes that meet. It carries a few set-up messages and
// descriptors, and its end says that the other process ended. No data ever.
// SOCK_SEQPACKET: a message comes whole or not at all, so there is no buffering to get wrong.
// Floor: transport/shm. Thread: under the transport's mutex.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "csrc/base/hmac.h"
#include "csrc/base/status.h"
#include "csrc/memory/region.h"
#include "csrc/memory/sole_fd.h"
#include "csrc/memory/unique_fd.h"
#include "csrc/transport/shm/address.h"

namespace rdmacoll {

enum class MessageKind : uint32_t {
  Challenge = 1,  // first, both ways; `proof` begins with a nonce
  Proof = 2,      // in answer to a Challenge: signed with the job's secret (handshake.h)
  Hello = 3,      // in answer to a Proof; descriptors: control segment, wake eventfd
  Region = 4,     // a region is offered; descriptor: its memory, or `reference` within one process
  Bye = 5,        // last: the sender leaves on purpose
  Closed = 6,     // the sender has closed a region of the receiver, or will not open it
  // A region of the sender is not to be opened any more. Where it is not open the answer is Closed.
  Withdrawn = 7,
  Knock = 8,  // first, instead of a Challenge: the sender wants to be dialled, and hangs up
  Note = 9,   // an offer of no region
};

// One layout for all kinds; both ends run the same version, which the tag checks.
struct Message {
  static constexpr uint64_t kTag = 0x3453'6d68'7300'0001;  // "\1\0shmS4"
  uint64_t tag = kTag;
  MessageKind kind{};
  RegionId region = kNoRegion;
  uint64_t generation = 0;  // of the region's id
  uint64_t bytes = 0;
  uint64_t reference = 0;
  uint64_t note = 0;  // of an offer
  ProcessId sender{};
  Mac proof{};
};
static_assert(sizeof(Message) == 96);

struct Incoming {
  Message message;
  std::array<UniqueFd, 2> descriptors;  // as many as the kind carries, else the message is Broken
};

class PeerSocket {
 public:
  enum class Received { Nothing, One, Closed, Broken };

  explicit PeerSocket(SoleFd fd) : fd_(std::move(fd)) {}
  // A listener under an abstract name: it exists as long as the descriptor.
  static Result<SoleFd> listen(const std::string& name);
  // The next that has dialled; an invalid socket: there is none.
  static PeerSocket accept(const SoleFd& listener);
  // PeerFailed when nobody listens. An invalid socket when the listener is busy: try again.
  static Result<PeerSocket> dial(const std::string& name);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  Result<ucred> credentials() const;
  // PeerFailed when the other side has closed it.
  Status send(const Message& message, std::initializer_list<int> descriptors) const;
  // False: there is no room now.
  Result<bool> try_send(const Message& message, std::initializer_list<int> descriptors) const;
  Received receive(Incoming* incoming) const;
  // Ends it both ways. What has come can still be received.
  void hang_up() const { ::shutdown(fd_.get(), SHUT_RDWR); }

 private:
  SoleFd fd_;
};

// Makes it safe to write to what a peer has passed for waking it: checks that it is an eventfd, and
// makes it non-blocking. (The peer shares this flag, and could take it back.)
Status make_bell(const UniqueFd& passed);

}  // namespace rdmacoll
