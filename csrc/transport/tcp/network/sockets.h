// Sockets: listening, dialling and the options of a connection. The only file with these calls.
// Floor: transport/tcp/network. Thread: any; nothing blocks.
#pragma once

#include <cstdint>

#include "csrc/base/status.h"
#include "csrc/memory/sole_fd.h"
#include "csrc/transport/tcp/network/ip.h"
#include "csrc/transport/tcp/settings/settings.h"

namespace rdmacoll::tcp {

struct Listener {
  SoleFd fd;
  Endpoint at;
};

// At this address only, on the first port of the range that is free. Unsupported: none is.
Result<Listener> listen_at(const IpAddress& ip, const PortRange& ports);

// The next that has called there; invalid: there is none, or errno says why not.
SoleFd accept_from(const Listener& listener);
// A connection that is under way; an invalid descriptor, with errno set, if it failed at once.
SoleFd begin_dialling(const Endpoint& to);
// Where the other end of a connection is; no address: it has ended.
Endpoint other_end_of(int fd);
// Of a socket: 0, or why its connection failed.
int error_of(int fd);

// For the life of a connection: small messages leave at once, and a host that acknowledges nothing
// for timeout_ms, though nothing is sent to it, ends it.
Status set_up_connection(int fd, int64_t timeout_ms);

// Whether bytes were sent that the other host's kernel has not acknowledged.
bool has_unacknowledged(int fd);
// Whether bytes have come that nobody has read.
bool has_unread(int fd);
// For how long the other kernel has answered nothing, although bytes or the question whether it has
// room were sent to it; 0: it owes no answer.
int64_t unanswered_ms(int fd);

}  // namespace rdmacoll::tcp
