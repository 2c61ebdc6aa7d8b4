// Mail: messages of any length between this rank and others of one communicator, over its
// point-to-point operations. What comes is told in the order in which it was sent, while nobody
// waits for it. Floor: torch_ext/order. Thread: any; what comes is told in a thread that drives the
// engine, with no lock held.
//
// A short message is one line of the engine. Of a longer one the first bytes are: they say how many
// follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "csrc/base/status.h"
#include "csrc/engine/communicator.h"
#include "csrc/base/bytes.h"

namespace rdmacoll::torch_ext {

class Mail : public std::enable_shared_from_this<Mail> {
 public:
  // Of a message that could not be received: why. Nothing more comes from that rank.
  using Told =
      std::function<void(uint32_t rank, const Status& status, std::span<const std::byte> message)>;

  // The communicator is used for nothing else, and outlives this.
  Mail(Communicator& communicator, Told told)
      : communicator_(communicator), told_(std::move(told)) {}

  // What the rank sends is told from now on.
  void listen_to(uint32_t rank);
  // Returns at once; the bytes are kept until they have left.
  Status send(uint32_t rank, std::shared_ptr<const Bytes> message);

 private:
  struct Incoming;
  void receive(std::shared_ptr<Incoming> incoming);
  bool take(Incoming& incoming, const Status& status);

  Communicator& communicator_;
  const Told told_;
};

}  // namespace rdmacoll::torch_ext
