// Calls: what this process has asked one server, until it is answered. There is always room for the
// answer: who calls reserves it. What was sent stays where it is until then, so that it can be sent
// to another server, too. Floor: ps/wire. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "csrc/ps/table/table_spec.h"
#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

class Calls {
 public:
  struct Call {
    RecordKind answer = RecordKind::Done;
    uint64_t answer_bytes = 0;  // of its body, at most
    // What is done with an answer of that kind; what is wrong with it.
    std::function<Status(const Record&)> take{};
    // How it has ended. PeerFailed: the server has ended; Aborted: it has not what was asked for,
    // or not now. sent: the body of what was sent, for as long as this runs.
    std::function<void(const Status&, std::span<const std::byte> sent)> ended{};
  };

  // who: the server, for people.
  Calls(std::shared_ptr<Connection> connection, std::string who)
      : connection_(std::move(connection)), who_(std::move(who)) {}

  const std::string& who() const { return who_; }
  // Ok, or why nothing is answered any more.
  Status failure() const { return given_up_.ok() ? connection_->failure() : given_up_; }
  bool is_near() const { return connection_->is_near(); }
  size_t open() const { return open_.size(); }
  // The server knows the table when it reads what is called next: it is told, once. False: there is
  // no room for it now.
  bool tell(uint32_t table, const TableSpec& spec);
  // Where the body of a call is to be written, which is then made; nullptr: not now.
  std::byte* room(uint64_t body_bytes, uint64_t answer_bytes);
  void make(RecordHead head, Call call);
  // Takes the answers that have come; whether any had.
  bool take_answers();
  // It is not used any more: what is open has failed, as if the server had ended.
  void give_up();

 private:
  struct Open {
    Call call;
    uint64_t reserved = 0;  // bytes
    uint64_t record = 0;    // the connection's
    std::span<const std::byte> body{};
  };
  Status outcome(const Record& answer, const Call& call) const;
  void end(uint64_t number, const Status& how);

  const std::shared_ptr<Connection> connection_;
  const std::string who_;
  Status given_up_;
  std::set<uint32_t> told_;        // tables
  std::byte* body_ = nullptr;      // of the call for which there was room last
  std::map<uint64_t, Open> open_;  // by number
  uint64_t reserved_ = 0;
  uint64_t numbers_ = 0;
};

}  // namespace rdmacoll::ps
