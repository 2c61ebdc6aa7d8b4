// Reading. Floor: files. Thread: any.
#include "csrc/files/reading.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace rdmacoll::files {
namespace {

// Bytes that are read beside their place, and are copied there.
struct Beside {
  std::shared_ptr<std::vector<float>> floats;
  uint64_t skipped = 0;  // bytes
  std::span<std::byte> out{};
};

bool is_aligned(const std::byte* at) {
  return reinterpret_cast<uintptr_t>(at) % sizeof(float) == 0;
}

}  // namespace

Status read(Tables& tables, const Parts& parts, uint64_t first, std::span<std::byte> out,
            const std::shared_ptr<const void>& keeps) {
  std::vector<Wanted> wanted;
  std::vector<Beside> beside;
  uint64_t begin = 0;
  size_t done = 0;
  for (const Part& part : parts) {
    const uint64_t at = first + done - begin;
    begin += part.bytes;
    if (done == out.size()) break;
    if (at >= part.bytes) continue;
    const auto piece = out.subspan(done, std::min<uint64_t>(part.bytes - at, out.size() - done));
    const bool is_first = done == 0;
    done += piece.size();
    if (part.table == kHole) {
      std::ranges::fill(piece, std::byte{});
      continue;
    }
    const uint64_t skipped = at % sizeof(float);
    const uint64_t floats = elements_of(skipped + piece.size());
    const bool ends_whole = (skipped + piece.size()) % sizeof(float) == 0;
    std::byte* const to = piece.data() - skipped;
    const bool is_direct =
        is_aligned(to) && (skipped == 0 || is_first) && (ends_whole || done == out.size());
    Wanted& one = wanted.emplace_back(Wanted{part, at / sizeof(float)});
    if (is_direct) {
      one.into = {reinterpret_cast<float*>(to), floats};
      one.keeps = keeps;
    } else {
      const auto own = std::make_shared<std::vector<float>>(floats);
      beside.push_back({own, skipped, piece});
      one.into = *own;
      one.keeps = own;
    }
  }
  RDMACOLL_CHECK(done == out.size());
  if (!wanted.empty()) RDMACOLL_RETURN_IF_ERROR(tables.read(wanted));
  for (const Beside& one : beside) {
    std::memcpy(one.out.data(), std::as_bytes(std::span(*one.floats)).data() + one.skipped,
                one.out.size());
  }
  return Status();
}

}  // namespace rdmacoll::files
