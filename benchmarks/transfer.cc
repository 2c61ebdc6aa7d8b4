// One tensor from a process to a given tensor in another one, until the first knows that it is
// there: csrc/remote beside two RPCs over the same transport, beside a bare copy with a flag, and
// beside a bare socket.
//   transfer [between PID/ADDRESS PID/ADDRESS] [reads] [rounds, default 15 [bytes ...]]
// between: in the networks of these processes, of which they are addresses (network_transfer.py).
// reads: the receiver reads the tensor before it answers.
// Floor: benchmarks.
#include <memory>

#include "benchmarks/transfer/flag_way.h"
#include "benchmarks/transfer/pairs.h"
#include "benchmarks/transfer/remote_way.h"
#include "benchmarks/transfer/rpc_ways.h"
#include "benchmarks/transfer/tcp_way.h"

int main(int argc, char** argv) {
  using namespace rdmacoll::bench;
  const auto ours = [](const Place& place) { return std::make_unique<RemoteWay>(place); };
  return compare(
      {
          {"rdma", ours},
          {"rdma again", ours},
          {"flag", [](const Place& place) { return std::make_unique<FlagWay>(place); }, true},
          {"bare tcp", [](const Place& place) { return std::make_unique<TcpWay>(place); }},
          {"rpc weak",
           [](const Place& place) {
             return std::make_unique<WeakRpc>(place, Marshal::InItsBuffer);
           }},
          {"rpc weak, in the inbox",
           [](const Place& place) {
             return std::make_unique<WeakRpc>(place, Marshal::InTheInbox);
           }},
          {"rpc strong", [](const Place& place) { return std::make_unique<StrongRpc>(place); }},
      },
      argc, argv);
}
