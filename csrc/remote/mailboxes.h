// Mailboxes: where other processes post tensors of any shape to this one. A letter is a header: the
// tensor stays where it is until this process reads it. Floor: remote. Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/engine/connect/tagged_fields.h"
#include "csrc/engine/session/session.h"

namespace rdmacoll {

struct Letter {
  SessionPtr from;
  uint64_t number = 0;  // the sender's
  TaggedFields told;    // as of an open
};

class Mailbox {
 public:
  // Letters that wait to be taken; who posts more waits.
  static constexpr size_t kLettersMax = 256;

  // False: it is full.
  bool add(Letter letter) {
    const std::lock_guard lock(mutex_);
    if (letters_.size() >= kLettersMax) return false;
    letters_.push_back(std::move(letter));
    return true;
  }
  bool is_empty() const {
    const std::lock_guard lock(mutex_);
    return letters_.empty();
  }
  // One that was taken and could not be read: it is the next again.
  void put_back(Letter letter) {
    const std::lock_guard lock(mutex_);
    letters_.push_front(std::move(letter));
  }
  std::optional<Letter> take() {
    const std::lock_guard lock(mutex_);
    if (letters_.empty()) return std::nullopt;
    Letter letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }
  // Of this number, or all of the process.
  void drop(const SessionPtr& from, std::optional<uint64_t> number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(letters_, [&](const Letter& letter) {
      return letter.from == from && letter.number == number.value_or(letter.number);
    });
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Letter> letters_;
};
using MailboxPtr = std::shared_ptr<Mailbox>;

class Mailboxes {
 public:
  // nullptr: there is one of this name.
  MailboxPtr add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = boxes_.try_emplace(name, nullptr);
    if (!is_new) return nullptr;
    return at->second = std::make_shared<Mailbox>();
  }
  // nullptr: there is none of this name.
  MailboxPtr find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = boxes_.find(name);
    return found == boxes_.end() ? nullptr : found->second;
  }
  MailboxPtr remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = boxes_.extract(name);
    return found ? found.mapped() : nullptr;
  }
  void drop(const SessionPtr& from, std::optional<uint64_t> number) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, box] : boxes_) box->drop(from, number);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, MailboxPtr> boxes_;
};

}  // namespace rdmacoll
