// TcpSteps: an input as what a process of the job says over tcp, step by step. A step is a byte,
// what is done; a head without its tag; the length of what follows, in two bytes; and that.
// Floor: tests. Thread: one.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "csrc/transport/tcp/connection/frame.h"

namespace rdmacoll::fuzz {

struct TcpStep {
  static constexpr size_t kHeadBytes = offsetof(tcp::FrameHead, tag);

  uint8_t what = 0;
  tcp::FrameHead head;
  std::string behind;

  std::string encode() const {
    const auto bytes = static_cast<uint16_t>(behind.size());
    return static_cast<char>(what) + std::string(reinterpret_cast<const char*>(&head), kHeadBytes) +
           std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes)) + behind;
  }
  // False: there is none left.
  static bool take(std::string_view* input, TcpStep* step) {
    uint16_t bytes = 0;
    if (input->size() < 1 + kHeadBytes + sizeof(bytes)) return false;
    step->what = static_cast<uint8_t>(input->front());
    std::memcpy(static_cast<void*>(&step->head), input->data() + 1, kHeadBytes);
    std::memcpy(&bytes, input->data() + 1 + kHeadBytes, sizeof(bytes));
    input->remove_prefix(1 + kHeadBytes + sizeof(bytes));
    step->behind = input->substr(0, bytes);
    input->remove_prefix(step->behind.size());
    return true;
  }
  // With a tag that holds, as frame `number` of its connection.
  std::string frame(const SipKey& key, uint64_t number) const {
    tcp::FrameHead signed_head = head;
    if (!is_length_raw()) signed_head.bytes = static_cast<uint32_t>(behind.size());
    const std::string padded = behind + std::string(tcp::kMaxBodyBytes, '\0');
    if (tcp::has_payload(head.kind) || signed_head.bytes <= tcp::kMaxBodyBytes) {
      signed_head.tag = tcp::tag_of(key, number, signed_head, padded.data());
    }
    return std::string(reinterpret_cast<const char*>(&signed_head), sizeof(signed_head)) + behind;
  }
  bool is_length_raw() const { return (what & 0x80) != 0; }
};

}  // namespace rdmacoll::fuzz
