// Connections between workers and servers of one thread: what one sends the other takes at once.
// Floor: tests. Thread: one.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "csrc/ps/wire/connection.h"
#include "csrc/ps/wire/ring_bytes.h"

namespace rdmacoll::ps {

// One direction: as much as a ring holds.
struct Way {
  struct Sent {
    RecordHead head;
    std::vector<std::byte> body;
    bool is_taken = false;
  };
  std::deque<Sent> sent;
  uint64_t bytes = 0;                                 // that are not given back
  uint64_t first = 0;                                 // the number of the front
  std::map<uint64_t, std::vector<std::byte>> kept{};  // given back, and not to be written over
};

class NearConnection final : public Connection {
 public:
  NearConnection(std::shared_ptr<Way> in, std::shared_ptr<Way> out)
      : in_(std::move(in)), out_(std::move(out)) {}

  void set_near() { is_near_ = true; }
  bool is_near() const override { return is_near_; }
  void fail() { failed_ = Status(StatusCode::PeerFailed, "the other has ended"); }
  void leave() override { fail(); }
  Status failure() const override { return failed_; }
  // What was sent before the other has ended comes all the same.
  bool take(Record& record) override {
    for (size_t i = 0; i < in_->sent.size(); ++i) {
      Way::Sent& sent = in_->sent[i];
      if (std::exchange(sent.is_taken, true)) continue;
      record = {sent.head, sent.body, in_->first + i};
      return true;
    }
    return false;
  }
  void give_back(const Record& record) override {
    ASSERT_EQ(record.end, in_->first)
        << "given back out of turn, which these connections do not take";
    in_->bytes -= kLineBytes + padded(record.body.size());
    in_->kept.emplace(in_->first, std::move(in_->sent.front().body));
    in_->sent.pop_front();
    ++in_->first;
  }
  std::byte* room(uint64_t body_bytes) override {
    if (out_->bytes + kLineBytes + padded(body_bytes) > kRingBytes) return nullptr;
    next_.assign(body_bytes, std::byte());
    return next_.empty() ? &none_ : next_.data();
  }
  uint64_t send(const RecordHead& head) override {
    EXPECT_EQ(head.bytes, next_.size());
    const uint64_t number = out_->first + out_->sent.size();
    out_->bytes += kLineBytes + padded(next_.size());
    out_->sent.push_back({head, std::move(next_)});
    return number;
  }
  void keep(uint64_t from) override {
    out_->kept.erase(out_->kept.begin(), out_->kept.lower_bound(from));
  }

 private:
  const std::shared_ptr<Way> in_;
  const std::shared_ptr<Way> out_;
  std::vector<std::byte> next_;
  std::byte none_{};
  bool is_near_ = false;
  Status failed_;
};

inline std::pair<std::shared_ptr<NearConnection>, std::shared_ptr<NearConnection>>
near_connections() {
  const auto there = std::make_shared<Way>();
  const auto back = std::make_shared<Way>();
  return {std::make_shared<NearConnection>(back, there),
          std::make_shared<NearConnection>(there, back)};
}

}  // namespace rdmacoll::ps
