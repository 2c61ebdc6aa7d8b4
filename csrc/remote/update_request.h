// UpdateRequest: what the owner of a word is asked where its transport makes no updates: to make
// one with its CPU. It comes from outside, so reading trusts nothing. Floor: remote. Thread:
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "csrc/remote/fields.h"
#include "csrc/transport/update.h"

namespace rdmacoll {

struct UpdateRequest {
  uint64_t number = 0;  // of the opening or the allocation
  uint64_t offset = 0;  // of the word, in what is open
  Update update;
};

inline TaggedFields fields_of(const UpdateRequest& request) {
  const Update& update = request.update;
  TaggedFields made{{fields::kDo, fields::kUpdate},
                    {fields::kNumber, std::to_string(request.number)},
                    {fields::kOffset, std::to_string(request.offset)},
                    {fields::kOperand, std::to_string(update.operand)}};
  if (update.kind == Update::Kind::CompareSwap) {
    made[fields::kExpected] = std::to_string(update.expected);
  }
  return made;
}

// nullopt: it makes no sense.
inline std::optional<UpdateRequest> update_request_of(const TaggedFields& asked) {
  const auto number = number_of(asked, fields::kNumber);
  const auto offset = number_of(asked, fields::kOffset);
  const auto operand = number_of(asked, fields::kOperand);
  if (!number || !offset || !operand) return std::nullopt;
  if (!asked.contains(fields::kExpected)) {
    return UpdateRequest{*number, *offset, Update::add(*operand)};
  }
  const auto expected = number_of(asked, fields::kExpected);
  if (!expected) return std::nullopt;
  return UpdateRequest{*number, *offset, Update::compare_swap(*expected, *operand)};
}

}  // namespace rdmacoll
