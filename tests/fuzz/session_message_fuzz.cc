// A message of a session, and what remote memory reads in it: all of it or none, and what was
// written is read again.
#include <algorithm>

#include "csrc/engine/session/message.h"
#include "csrc/engine/session/session_note.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/update_request.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

std::string written(const MessageHead& head, const std::string& text) {
  std::array<std::byte, kMessageBytesMax> bytes;
  const uint64_t length = write_message(bytes.data(), head, text);
  return {reinterpret_cast<const char*>(bytes.data()), length};
}

}  // namespace

std::vector<std::string> seeds() {
  const std::string open = encode(TaggedFields{
      {fields::kDo, fields::kOpen}, {fields::kName, "weights"}, {fields::kNumber, "17"}});
  const std::string told =
      encode(TaggedFields{{fields::kKey, std::string(20, 'k')}, {fields::kBytes, "4096"}});
  const std::string update =
      encode(fields_of(UpdateRequest{17, 4096, Update::compare_swap(1, ~uint64_t{0})}));
  return {written({.number = 1}, open),
          written({.number = 3}, update),
          written({.number = 1, .kind = MessageHead::Kind::Reply}, told),
          written({.number = 2, .kind = MessageHead::Kind::Reply, .code = 1}, "no"),
          written({}, ""),
          written({.kind = MessageHead::Kind::Close}, "")};
}

void run(const std::string& bytes) {
  if (bytes.size() >= sizeof(uint64_t)) {
    uint64_t note = 0;
    std::memcpy(&note, bytes.data(), sizeof(note));
    if (const auto known = session_note_of(note)) {
      RDMACOLL_CHECK(LinkNote::unpack(note).token != kSessionToken || pack(*known) == note);
    }
  }
  const std::string slot = bytes.substr(0, kMessageBytesMax);
  const auto message = read_message(std::as_bytes(std::span(slot.data(), slot.size())));
  if (!message) return;
  RDMACOLL_CHECK(written(message->head, message->text) == slot);
  auto all = parse_tagged_fields(message->text);
  if (!all.ok()) return check_error(all.status());
  if (const auto update = update_request_of(all.value())) {
    const auto again = update_request_of(fields_of(*update));
    RDMACOLL_CHECK(again && fields_of(*again) == fields_of(*update));
  }
  for (const char* name : {fields::kNumber, fields::kOffset, fields::kBytes, fields::kLine}) {
    const std::string& text = field_of(all.value(), name);
    const auto number = number_of(all.value(), name);
    const bool is_digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return c >= '0' && c <= '9';
    });
    RDMACOLL_CHECK(!number || is_digits);
  }
}

}  // namespace rdmacoll::fuzz
