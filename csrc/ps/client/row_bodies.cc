// RowBodies. Floor: ps/client. Thread: one.
#include "csrc/ps/client/row_bodies.h"

#include <algorithm>
#include <cstring>

#include "csrc/ps/wire/connection.h"

namespace rdmacoll::ps {

uint64_t RowBodies::bytes(const Body& body) const {
  const uint64_t row_bytes = sizeof(uint64_t) + dim_ * sizeof(float);
  return body.parts.size() * sizeof(PushPart) + body.rows.size() * row_bytes + rates_bytes(as_);
}

std::optional<RowBodies::Body> RowBodies::next() {
  const auto& runs = order_.runs();
  const auto& rows = order_.rows();
  Body body;
  while (run_ < runs.size()) {
    const RowOrder::Run& run = runs[run_];
    if (body.rows.empty()) body.server = run.server;
    if (run.server != body.server) break;
    row_ = std::max(row_, run.begin);
    body.parts.push_back({.bucket = run.bucket});
    while (row_ < run.end) {
      if (bytes(body) + sizeof(uint64_t) + dim_ * sizeof(float) > kMostBodyBytes) break;
      const uint32_t begin = row_++;
      while (row_ < run.end && ids_[rows[row_]] == ids_[rows[begin]]) ++row_;
      body.rows.push_back({begin, row_});
      ++body.parts.back().rows;
    }
    if (row_ < run.end) {
      if (body.parts.back().rows == 0) body.parts.pop_back();
      break;
    }
    ++run_;
  }
  if (body.rows.empty()) return std::nullopt;
  return body;
}

void RowBodies::write(const Body& body, const float* values, std::byte* to) const {
  const auto& rows = order_.rows();
  std::memcpy(to, body.parts.data(), body.parts.size() * sizeof(PushPart));
  to += body.parts.size() * sizeof(PushPart);
  for (const Row& row : body.rows) {
    std::memcpy(to, &ids_[rows[row.begin]], sizeof(uint64_t));
    to += sizeof(uint64_t);
  }
  auto* sum = reinterpret_cast<float*>(to);
  for (const Row& row : body.rows) {
    const uint32_t first = as_ == PushAs::Gradient ? row.begin : row.end - 1;
    std::memcpy(sum, values + rows[first] * dim_, dim_ * sizeof(float));
    for (uint32_t more = first + 1; more < row.end; ++more) {
      const float* const added = values + rows[more] * dim_;
      for (uint64_t i = 0; i < dim_; ++i) sum[i] += added[i];
    }
    sum += dim_;
  }
  std::memcpy(sum, &rates_, rates_bytes(as_));
}

}  // namespace rdmacoll::ps
