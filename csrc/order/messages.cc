// Floor: order.
#include "csrc/order/messages.h"

#include <algorithm>
#include <bit>

#include "csrc/base/printable.h"

namespace rdmacoll {
namespace {

// Of each rank there are as many rows as its kind of operation has.
bool makes_sense(const Agreed& agreed) {
  const NamedRequest& request = agreed.request;
  if (!has_rows(request.kind)) return agreed.rows.empty();
  const size_t of_each =
      request.kind == NamedKind::AllToAll ? agreed.rows.size() : request.tensors.size();
  return std::all_of(agreed.rows.begin(), agreed.rows.end(), [&](const std::vector<int64_t>& rows) {
    return rows.size() == of_each && are_rows(rows);
  });
}

}  // namespace

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
  writer.put_count(words_.size());
  for (const auto& [word, bits] : words_) {
    writer.put(static_cast<uint8_t>(word));
    writer.put(bits);
  }
}

SlotSet SlotSet::read(ByteReader& reader) {
  static_assert(kSlotsMax / 64 <= 256);
  SlotSet set;
  uint32_t least = 0;  // of the next word
  for (uint32_t left = reader.count(1 + sizeof(uint64_t)); left > 0 && reader.is_good(); --left) {
    const uint32_t word = reader.get<uint8_t>();
    const auto bits = reader.get<uint64_t>();
    reader.expect(word >= least && word < kSlotsMax / 64 && bits != 0);
    set.words_[word] = bits;
    least = word + 1;
  }
  return reader.is_good() ? set : SlotSet();
}

void write(ByteWriter& writer, const NamedRequest& request) {
  writer.put(request.name);
  writer.put(request.kind);
  writer.put(request.op);
  writer.put(request.is_kept);
  writer.put(request.root);
  writer.put(request.prescale);
  writer.put(request.postscale);
  writer.put_count(request.tensors.size());
  for (const TensorShape& tensor : request.tensors) {
    writer.put(tensor.dtype);
    writer.put(tensor.dims);
  }
  writer.put(request.splits);
}

NamedRequest read_named_request(ByteReader& reader) {
  NamedRequest request;
  request.name = reader.text();
  request.kind = reader.up_to(kLastNamedKind);
  request.op = reader.up_to(kLastNamedOp);
  request.is_kept = reader.flag();
  request.root = reader.get<int32_t>();
  request.prescale = reader.get<double>();
  request.postscale = reader.get<double>();
  request.tensors.resize(reader.count(2 * sizeof(uint32_t)));
  for (TensorShape& tensor : request.tensors) {
    tensor.dtype = reader.text();
    tensor.dims = reader.numbers();
  }
  request.splits = reader.numbers();
  reader.expect(makes_sense(request));
  return request;
}

void write(ByteWriter& writer, const Agreed& agreed) {
  write(writer, agreed.request);
  writer.put_count(agreed.rows.size());
  for (const std::vector<int64_t>& rows : agreed.rows) writer.put(rows);
}

Agreed read_agreed(ByteReader& reader) {
  Agreed agreed;
  agreed.request = read_named_request(reader);
  agreed.rows.resize(reader.count(sizeof(uint32_t)));
  for (std::vector<int64_t>& rows : agreed.rows) rows = reader.numbers();
  reader.expect(makes_sense(agreed));
  return agreed;
}

void write(ByteWriter& writer, const Late& late) {
  writer.put(late.asked_by);
  writer.put_count(late.names.size());
  for (const Unsubmitted& one : late.names) {
    writer.put(one.name);
    writer.put_count(one.missing.size());
    for (const uint32_t rank : one.missing) writer.put(rank);
  }
  writer.put(late.more);
}

Late read_late(ByteReader& reader) {
  Late late;
  late.asked_by = reader.get<uint32_t>();
  late.names.resize(reader.count(2 * sizeof(uint32_t)));
  reader.expect(late.names.size() <= kLateNamesMax);
  for (Unsubmitted& one : late.names) {
    one.name = reader.text();
    reader.expect(printable(one.name) == one.name);
    one.missing.resize(reader.count(sizeof(uint32_t)));
    for (uint32_t& rank : one.missing) rank = reader.get<uint32_t>();
  }
  late.more = reader.get<uint32_t>();
  return late;
}

Status malformed(const std::string& from) {
  return Status(StatusCode::InvalidArgument,
                "a message about named operations from " + from +
                    " is not what this version of rdmacoll writes; run the same version on all "
                    "ranks");
}

}  // namespace rdmacoll
