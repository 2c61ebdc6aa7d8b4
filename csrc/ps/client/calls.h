// Calls: what a worker has asked one server, until it is answered. There is always room for the
// answer: who calls reserves it. Floor: ps/client. Thread: under the client's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "csrc/ps/client/batch.h"
#include "csrc/ps/wire/line.h"

namespace rdmacoll::ps {

class Calls {
 public:
  // What is done with a body of the kind that was asked for; what is wrong with it.
  using Take = std::function<Status(std::span<const std::byte>)>;
  struct Call {
    BatchPtr batch;
    RecordKind answer = RecordKind::Done;
    uint64_t answer_bytes = 0;  // of its body, at most
    Take take{};
  };

  // who: the server, for people.
  Calls(std::shared_ptr<Line> line, std::string who)
      : line_(std::move(line)), who_(std::move(who)) {}

  Status failure() const { return line_->failure(); }
  // Where the body of a call is to be written, which is then made; nullptr: not now.
  std::byte* room(uint64_t body_bytes, const Call& call);
  void make(RecordHead head, Call call);
  // Takes the answers that have come; whether any had.
  bool take_answers();

 private:
  struct Open {
    Call call;
    uint64_t reserved = 0;  // bytes
  };
  static uint64_t reserved_for(const Call& call);
  Status outcome(const Record& answer, const Call& call) const;
  void fail(const Status& why);

  const std::shared_ptr<Line> line_;
  const std::string who_;
  std::map<uint64_t, Open> open_;  // by number
  uint64_t reserved_ = 0;
  uint64_t numbers_ = 0;
};

}  // namespace rdmacoll::ps
