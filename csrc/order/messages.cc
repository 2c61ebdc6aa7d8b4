// Floor: order.
#include "csrc/order/messages.h"

#include <bit>

namespace rdmacoll {

std::vector<uint32_t> SlotSet::slots() const {
  std::vector<uint32_t> slots;
  for (auto [word, bits] : words_) {
    for (; bits != 0; bits &= bits - 1) {
      slots.push_back(word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
    }
  }
  return slots;
}

void SlotSet::write(ByteWriter& writer) const {
  writer.put(static_cast<uint32_t>(words_.size()));
  for (const auto& [word, bits] : words_) {
    writer.put(static_cast<uint8_t>(word));
    writer.put(bits);
  }
}

SlotSet SlotSet::read(ByteReader& reader) {
  static_assert(kSlotsMax / 64 <= 256);
  SlotSet set;
  const uint32_t words = reader.room_for(1 + sizeof(uint64_t));
  for (uint32_t i = 0; i < words; ++i) {
    const auto word = reader.get<uint8_t>();
    set.words_[word] = reader.get<uint64_t>();
  }
  return set;
}

void write(ByteWriter& writer, const NamedRequest& request) {
  writer.put(std::string_view(request.name));
  writer.put(request.kind);
  writer.put(request.op);
  writer.put(request.is_kept);
  writer.put(request.root);
  writer.put(request.prescale);
  writer.put(request.postscale);
  writer.put(static_cast<uint32_t>(request.tensors.size()));
  for (const TensorShape& tensor : request.tensors) {
    writer.put(std::string_view(tensor.dtype));
    writer.put(tensor.dims);
  }
  writer.put(request.splits);
}

NamedRequest read_named_request(ByteReader& reader) {
  NamedRequest request;
  request.name = reader.text();
  request.kind = reader.get<NamedKind>();
  request.op = reader.get<NamedOp>();
  request.is_kept = reader.get<uint8_t>() != 0;
  request.root = reader.get<int32_t>();
  request.prescale = reader.get<double>();
  request.postscale = reader.get<double>();
  request.tensors.resize(reader.room_for(2 * sizeof(uint32_t)));
  for (TensorShape& tensor : request.tensors) {
    tensor.dtype = reader.text();
    tensor.dims = reader.numbers();
  }
  request.splits = reader.numbers();
  return request;
}

void write(ByteWriter& writer, const Agreed& agreed) {
  write(writer, agreed.request);
  writer.put(static_cast<uint32_t>(agreed.rows.size()));
  for (const std::vector<int64_t>& rows : agreed.rows) writer.put(rows);
}

Agreed read_agreed(ByteReader& reader) {
  Agreed agreed;
  agreed.request = read_named_request(reader);
  agreed.rows.resize(reader.room_for(sizeof(uint32_t)));
  for (std::vector<int64_t>& rows : agreed.rows) rows = reader.numbers();
  return agreed;
}

Status malformed(const std::string& from) {
  return Status(StatusCode::InvalidArgument,
                "a message about named operations from " + from +
                    " is not what this version of rdmacoll writes; run the same version on all "
                    "ranks");
}

}  // namespace rdmacoll
