// Mail: messages of any length between this rank and others of one communicator, over its
// point-to-point operations. What comes is told in the order in which it was sent, while nobody
// waits for it. What a message says is the caller's matter. Floor: engine. Thread: any; what comes
// is told in a thread that drives the engine, with no lock held.
//
// A short message is one line of the engine. Of a longer one the first bytes are: they say how many
// follow, in pieces, so that no more memory is taken than has come, and one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "csrc/base/bytes.h"
#include "csrc/base/status.h"
#include "csrc/engine/communicator.h"

namespace rdmacoll {

class Mail {
 public:
  // Of a message that could not be received: why. Nothing more comes from that rank.
  using Told =
      std::function<void(uint32_t rank, const Status& status, std::span<const std::byte> message)>;

  static constexpr size_t kPieceBytes = 1u << 20;

  // The communicator is used for nothing else, and outlives this.
  Mail(Communicator& communicator, Told told);
  // From now on nothing is told; what is being told by another thread just then may go on. May be
  // called by what is told.
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  // What the rank sends is told from now on.
  void listen_to(uint32_t rank);
  // Returns at once; the bytes are kept until they have left. To one rank: one at a time.
  Status send(uint32_t rank, std::shared_ptr<const Bytes> message);

 private:
  class Listening;
  struct Incoming;

  Communicator& communicator_;
  const std::shared_ptr<Listening> listening_;
};

}  // namespace rdmacoll
