// meeting: how a worker and a server come to have a connection. The worker posts a letter with a
// name that nobody else has; both expose a ring under that name, and open the other's. Another
// letter says what the worker lends. Floor: ps/wire. Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "csrc/ps/table/bucket_map.h"
#include "csrc/ps/wire/ring_connection.h"

namespace rdmacoll::ps {

// By what, and for how long.
struct Meeting {
  Remote& remote;
  int64_t timeout_ms;
  const InterruptCheck& interrupt;
};

// Calls come from now on, and are there until they are heard.
Result<MailboxPtr> begin_to_hear(Remote& remote);
// Who calls.
struct Caller {
  std::string address;
  ServerId server = kNoServer;  // kNoServer: a worker
};
// A connection to the server of an address, which `who` names to people.
Result<std::shared_ptr<RingConnection>> call_server(const Meeting& meeting, const Caller& caller,
                                                    const std::string& address,
                                                    const std::string& who);
// What a worker lends to a server, exposed by the worker under that name.
struct Lending {
  std::string address;  // the worker's
  std::string name;
  uint64_t worker = 0;
  uint32_t loan = 0;
};
// The work ends when the server can use it.
Result<WorkPtr> lend_to_server(const Meeting& meeting, const Lending& lending,
                               const std::string& address, const std::string& who);
struct Heard {
  std::shared_ptr<RingConnection> connection{};
  ServerId from = kNoServer;
  // nullptr: it is a call.
  OpenedPtr lent{};
  OpenedPtr letter{};  // of that; to be closed when it can be used
  uint64_t worker = 0;
  uint32_t loan = 0;
};
// The next process that has called, or lends something; Timeout: none has, or it does not answer.
Result<Heard> hear_call(const Meeting& meeting);

}  // namespace rdmacoll::ps
