// What comes over the socket of two processes that meet: the bytes of a message with some
// descriptors, of which none may be left open. The first byte of an input is their number.
#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>

#include "csrc/transport/shm/peer_socket.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

constexpr size_t kMostDescriptors = 4;  // two more than any message has

struct Pair {
  Pair() {
    int ends[2];
    RDMACOLL_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) == 0);
    sender = UniqueFd(ends[0]);
    receiver.emplace(SoleFd::made_by([&] { return ends[1]; }));
    passed = UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  }
  UniqueFd sender;
  std::optional<PeerSocket> receiver;
  UniqueFd passed;
};

void send(const Pair& pair, const std::string& bytes, size_t descriptors) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (descriptors > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors * sizeof(int));
    for (size_t i = 0; i < descriptors; ++i) {
      const int fd = pair.passed.get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(fd), &fd, sizeof(fd));
    }
  }
  const auto sent = ::sendmsg(pair.sender.get(), &header, MSG_NOSIGNAL);
  RDMACOLL_CHECK(sent == static_cast<ssize_t>(bytes.size()));
}

int next_descriptor() { return UniqueFd(::dup(0)).get(); }

}  // namespace

std::vector<std::string> seeds() {
  Message message;
  message.sender = {1, 2, 3};
  std::vector<std::string> seeds;
  for (const auto& [kind, reference, descriptors] : {std::tuple{MessageKind::Challenge, 0, '\0'},
                                                     {MessageKind::Proof, 0, '\0'},
                                                     {MessageKind::Hello, 0, '\2'},
                                                     {MessageKind::Region, 0, '\1'},
                                                     {MessageKind::Region, 4096, '\0'},
                                                     {MessageKind::Bye, 0, '\0'},
                                                     {MessageKind::Closed, 0, '\0'},
                                                     {MessageKind::Withdrawn, 0, '\0'},
                                                     {MessageKind::Knock, 0, '\0'},
                                                     {MessageKind::Note, 0, '\0'}}) {
    message.kind = kind;
    message.note = kind == MessageKind::Note || kind == MessageKind::Region ? 7 : 0;
    message.reference = static_cast<uint64_t>(reference);
    seeds.push_back(descriptors + bytes_of(message));
  }
  return seeds;
}

void run(const std::string& bytes) {
  static const Pair pair;
  if (bytes.size() < 2) return;
  const size_t descriptors = static_cast<uint8_t>(bytes[0]) % (kMostDescriptors + 1);
  const int next = next_descriptor();
  send(pair, bytes.substr(1), descriptors);
  {
    Incoming incoming;
    const PeerSocket::Received received = pair.receiver->receive(&incoming);
    RDMACOLL_CHECK(received == PeerSocket::Received::One ||
                   received == PeerSocket::Received::Broken);
    if (received == PeerSocket::Received::One) {
      RDMACOLL_CHECK(bytes_of(incoming.message) == bytes.substr(1));
      size_t kept = 0;
      for (const UniqueFd& fd : incoming.descriptors) kept += fd.valid();
      RDMACOLL_CHECK(kept == descriptors);
    }
  }
  RDMACOLL_CHECK(next_descriptor() == next);
}

}  // namespace rdmacoll::fuzz
