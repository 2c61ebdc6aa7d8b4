// What is said of operations by name: all that parses makes sense and is written as the same bytes,
// and what was written is read as it was.
#include <algorithm>

#include "csrc/order/messages.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

template <typename T>
std::string written(const T& value) {
  Bytes bytes;
  ByteWriter writer(bytes);
  write(writer, value);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A factor may be no number, which is not even equal to itself.
NamedRequest with_numbers(NamedRequest request) {
  for (double* factor : {&request.prescale, &request.postscale}) {
    if (*factor != *factor) *factor = 1;
  }
  return request;
}

void check_sizes(const NamedRequest& request) {
  RDMACOLL_CHECK(std::string(named_kind_name(request.kind)) != "?");
  RDMACOLL_CHECK(std::string(named_op_name(request.op)) != "?");
  RDMACOLL_CHECK(are_rows(rows_of(request)) || !has_rows(request.kind));
}

void read_request(const std::string& bytes) {
  ByteReader reader(bytes);
  const NamedRequest request = read_named_request(reader);
  if (!reader.is_complete()) return;
  RDMACOLL_CHECK(written(request) == bytes);
  if (has_rows(request.kind)) check_sizes(request);
  const NamedRequest once = with_numbers(request);
  const std::string again = written(once);
  ByteReader of_again(again);
  RDMACOLL_CHECK(read_named_request(of_again) == once && of_again.is_complete());
  RDMACOLL_CHECK(agrees(once, once));
}

void read_agreement(const std::string& bytes) {
  ByteReader reader(bytes);
  const Agreed agreed = read_agreed(reader);
  if (!reader.is_complete()) return;
  RDMACOLL_CHECK(written(agreed) == bytes);
  const Agreed once{with_numbers(agreed.request), agreed.rows};
  const std::string again = written(once);
  ByteReader of_again(again);
  RDMACOLL_CHECK(read_agreed(of_again) == once && of_again.is_complete());
  for (size_t i = 0; !agreed.rows.empty() && i < agreed.rows[0].size(); ++i) {
    int64_t all = 0;
    for (const std::vector<int64_t>& rows : agreed.rows) {
      RDMACOLL_CHECK(!__builtin_add_overflow(all, rows.at(i), &all));
    }
    RDMACOLL_CHECK(all >= 0);
  }
}

void read_slots(const std::string& bytes) {
  ByteReader reader(bytes);
  const SlotSet set = SlotSet::read(reader);
  const std::vector<uint32_t> slots = set.slots();
  RDMACOLL_CHECK(std::is_sorted(slots.begin(), slots.end()));
  RDMACOLL_CHECK(slots.empty() || slots.back() < kSlotsMax);
  if (!reader.is_complete()) return;
  Bytes again;
  ByteWriter writer(again);
  set.write(writer);
  RDMACOLL_CHECK(std::string(reinterpret_cast<const char*>(again.data()), again.size()) == bytes);
}

}  // namespace

std::vector<std::string> seeds() {
  NamedRequest reduce{.name = "layer.0.weight", .op = NamedOp::Sum};
  reduce.tensors = {{"Float", {512, 3, 7}}, {"Float", {}}};
  NamedRequest gather{.name = "rows", .kind = NamedKind::AllGather, .is_kept = false};
  gather.tensors = {{"Long", {3, 4}}, {"Half", {0}}};
  NamedRequest exchange{.name = "parts", .kind = NamedKind::AllToAll, .root = -1};
  exchange.tensors = {{"Int", {3}}};
  exchange.splits = {1, 2};
  Bytes slots;
  ByteWriter writer(slots);
  SlotSet set;
  for (const uint32_t slot : {0U, 63U, 64U, kSlotsMax - 1}) set.add(slot);
  set.write(writer);
  return {written(reduce),
          written(gather),
          written(exchange),
          written(Agreed{reduce, {}}),
          written(Agreed{gather, {{3, 0}, {9, 1}}}),
          written(Agreed{exchange, {{1, 2}, {0, 4}}}),
          std::string(reinterpret_cast<const char*>(slots.data()), slots.size())};
}

void run(const std::string& bytes) {
  read_request(bytes);
  read_agreement(bytes);
  read_slots(bytes);
}

}  // namespace rdmacoll::fuzz
