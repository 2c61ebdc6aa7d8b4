// SimConnection: a connection whose records come when a seed says so, and of which a process that
// ends takes some with it. Floor: tests. Thread: one at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

// One direction.
struct Pipe {
  struct Sent {
    RecordHead head;
    std::vector<std::byte> body;
  };
  std::vector<Sent> under_way{};  // the first is the next
  std::deque<Sent> come{};
  std::map<uint64_t, Sent> taken{};                   // and not given back, by number
  std::map<uint64_t, std::vector<std::byte>> kept{};  // given back, and not to be written over
  std::vector<Sent> lost{};                           // their senders may look at them
  uint64_t sent = 0;                                  // numbers
  bool is_cut = false;                                // nothing comes any more
  uint64_t taken_ever = 0;
  uint64_t most = UINT64_MAX;  // that are not given back, at a time

  uint64_t open() const { return under_way.size() + come.size() + taken.size(); }
  bool deliver() {
    if (under_way.empty()) return false;
    come.push_back(std::move(under_way.front()));
    under_way.erase(under_way.begin());
    return true;
  }
};

class SimConnection final : public Connection {
 public:
  SimConnection(std::shared_ptr<Pipe> in, std::shared_ptr<Pipe> out)
      : in_(std::move(in)), out_(std::move(out)) {}

  // This end hears that the other has ended, or cannot be reached.
  void fail() { failed_ = Status(StatusCode::PeerFailed, "the other has ended"); }
  void leave() override { fail(); }
  Status failure() const override { return failed_; }

  bool take(Record& record) override {
    if (in_->come.empty()) return false;
    const uint64_t number = in_->taken_ever++;
    Pipe::Sent& sent = in_->taken[number] = std::move(in_->come.front());
    in_->come.pop_front();
    record = {sent.head, sent.body, number};
    return true;
  }
  void give_back(const Record& record) override {
    const auto node = in_->taken.extract(record.end);
    ASSERT_TRUE(node) << "given back twice";
    in_->kept.emplace(record.end, std::move(node.mapped().body));
  }
  std::byte* room(uint64_t body_bytes) override {
    if (out_->open() >= out_->most) return nullptr;
    next_.assign(body_bytes, std::byte());
    return next_.empty() ? &none_ : next_.data();
  }
  uint64_t send(const RecordHead& head) override {
    EXPECT_EQ(head.bytes, next_.size());
    (out_->is_cut ? out_->lost : out_->under_way).push_back({head, std::move(next_)});
    return out_->sent++;
  }
  void keep(uint64_t from) override {
    out_->kept.erase(out_->kept.begin(), out_->kept.lower_bound(from));
  }

 private:
  const std::shared_ptr<Pipe> in_;
  const std::shared_ptr<Pipe> out_;
  std::vector<std::byte> next_;
  std::byte none_{};
  Status failed_;
};

struct SimLink {
  std::shared_ptr<Pipe> there = std::make_shared<Pipe>();
  std::shared_ptr<Pipe> back = std::make_shared<Pipe>();
  std::shared_ptr<SimConnection> near = std::make_shared<SimConnection>(back, there);
  std::shared_ptr<SimConnection> far = std::make_shared<SimConnection>(there, back);
};

}  // namespace rdmacoll::ps
