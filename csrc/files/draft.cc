// Draft. Floor: files. Thread: one at a time.
#include "csrc/files/draft.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/files/reading.h"

namespace rdmacoll::files {
namespace {

constexpr size_t kMostInMemory = 8;         // chunks
constexpr uint64_t kWindowBytes = 1 << 20;  // of a hole, for what is written in it
constexpr uint64_t kRewrittenBytes =
    1 << 20;  // a last part of fewer is written anew with what follows

}  // namespace

Draft::Draft(Host host, const Parts& before) : host_(std::move(host)) { publish(before); }

void Draft::publish(const Parts& parts) {
  chunks_.clear();
  for (const Part& part : parts) {
    chunks_.push_back({.bytes = part.bytes, .part = part});
    own_.erase(part.table);
  }
  bytes_ = bytes_of(parts);
  kept_ = before_ = chunks_.size();
  is_changed_ = false;
}

// --- which chunk ---------------------------------------------------------------------------------

Draft::Found Draft::find(uint64_t first) const {
  size_t chunk = 0;
  while (first >= chunks_[chunk].bytes) first -= chunks_[chunk++].bytes;
  return {chunk, first};
}

void Draft::change_from(size_t index) {
  kept_ = std::min(kept_, index);
  is_changed_ = true;
}

// A last part that is as it was before stays so, for who appends: but a small one is written anew,
// or a file that is written a few bytes at a time would have thousands.
bool Draft::has_open_tail() const {
  if (chunks_.empty()) return false;
  const Chunk& last = chunks_.back();
  const bool is_own = chunks_.size() > kept_;
  const bool is_open = last.memory != nullptr || (is_own && last.bytes < kRewrittenBytes);
  return is_open && last.bytes < kPartBytes && last.part != Part{kHole, last.bytes};
}

Result<size_t> Draft::tail() {
  if (!has_open_tail()) {
    // It is whole: servers may have it.
    if (!chunks_.empty() && chunks_.back().memory != nullptr) {
      static_cast<void>(begin(chunks_.back()));
    }
    RDMACOLL_RETURN_IF_ERROR(make_room());
    chunks_.push_back({.memory = std::make_shared<Memory>()});
  }
  return chunks_.size() - 1;
}

// What is written lies in a hole of its own then.
void Draft::split_hole(Found found) {
  const uint64_t whole = chunks_[found.chunk].bytes;
  const uint64_t before = found.at / kWindowBytes * kWindowBytes;
  const uint64_t own = std::min(kWindowBytes, whole - before);
  const auto hole = [](uint64_t bytes) {
    return Chunk{.bytes = bytes, .part = Part{kHole, bytes}};
  };
  const auto at = chunks_.begin() + static_cast<ptrdiff_t>(found.chunk);
  *at = hole(own);
  if (before + own < whole) chunks_.insert(at + 1, hole(whole - before - own));
  if (before > 0) {
    chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(found.chunk), hole(before));
  }
}

// --- to servers and back -------------------------------------------------------------------------

Status Draft::begin(Chunk& chunk) {
  if (chunk.part) return Status();
  if (chunk.bytes == 0) {
    chunk.part = Part{};
    return Status();
  }
  auto table = host_.new_table();
  if (!table.ok()) return table.status();
  const Part part{table.value(), chunk.bytes};
  own_.insert(part.table);
  auto writing = host_.tables.write(part, chunk.memory->floats(), chunk.memory);
  if (!writing.ok()) return writing.status();
  chunk.writing = writing.take();
  chunk.part = part;
  return Status();
}

// A failure leaves it in memory.
Status Draft::end(Chunk& chunk) {
  if (chunk.writing == nullptr) return Status();
  const Status written = std::exchange(chunk.writing, nullptr)->wait();
  if (written.ok()) {
    chunk.memory.reset();
  } else {
    chunk.part.reset();
  }
  return written;
}

Status Draft::make_room() {
  const auto in_memory = [](const Chunk& chunk) { return chunk.memory != nullptr; };
  if (static_cast<size_t>(std::ranges::count_if(chunks_, in_memory)) < kMostInMemory) {
    return Status();
  }
  Chunk* oldest = nullptr;
  for (Chunk& chunk : chunks_) {
    if (in_memory(chunk) && (oldest == nullptr || chunk.used < oldest->used)) oldest = &chunk;
  }
  RDMACOLL_RETURN_IF_ERROR(begin(*oldest));
  return end(*oldest);
}

Status Draft::to_memory(size_t index) {
  Chunk& chunk = chunks_[index];
  chunk.used = ++uses_;
  if (chunk.writing != nullptr) {
    // What is in memory stays there, and what servers have of it is not used.
    static_cast<void>(std::exchange(chunk.writing, nullptr)->wait());
    chunk.part.reset();
  }
  if (chunk.memory != nullptr) return Status();
  auto memory = std::make_shared<Memory>();
  RDMACOLL_RETURN_IF_ERROR(make_room());
  RDMACOLL_RETURN_IF_ERROR(memory->resize(chunk.bytes, host_.blocks));
  const std::span<std::byte> out(memory->data(), chunk.bytes);
  if (!out.empty()) {
    RDMACOLL_RETURN_IF_ERROR(
        files::read(host_.tables, {{chunk.part->table, chunk.bytes}}, 0, out, memory));
  }
  chunk.memory = std::move(memory);
  chunk.part.reset();
  return Status();
}

Status Draft::store() {
  Status first;
  const auto note = [&first](const Status& status) {
    if (first.ok()) first = status;
  };
  for (Chunk& chunk : chunks_) note(begin(chunk));
  for (Chunk& chunk : chunks_) note(end(chunk));
  return first;
}

// --- bytes ---------------------------------------------------------------------------------------

Result<uint64_t> Draft::read(uint64_t first, std::span<std::byte> out) {
  if (first >= bytes_) return uint64_t{0};
  out = out.first(std::min<uint64_t>(out.size(), bytes_ - first));
  size_t done = 0;
  for (Found found = find(first); done < out.size(); found = {found.chunk + 1, 0}) {
    Chunk& chunk = chunks_[found.chunk];
    const auto piece =
        out.subspan(done, std::min<uint64_t>(out.size() - done, chunk.bytes - found.at));
    if (chunk.memory != nullptr) {
      if (!piece.empty()) std::memcpy(piece.data(), chunk.memory->data() + found.at, piece.size());
    } else {
      // A copy: what is beside the piece in `out` has been read before.
      const auto beside =
          std::make_shared<std::vector<float>>(elements_of(piece.size() + 2 * sizeof(float)));
      auto* const to = reinterpret_cast<std::byte*>(beside->data() + 1) + found.at % sizeof(float);
      RDMACOLL_RETURN_IF_ERROR(
          files::read(host_.tables, {*chunk.part}, found.at, {to, piece.size()}, beside));
      std::memcpy(piece.data(), to, piece.size());
    }
    done += piece.size();
  }
  return uint64_t{done};
}

Status Draft::write(uint64_t first, std::span<const std::byte> data) {
  if (data.empty()) return Status();
  if (first > bytes_) RDMACOLL_RETURN_IF_ERROR(resize(first));
  while (!data.empty()) {
    Found found;
    if (first == bytes_) {
      auto chunk = tail();
      if (!chunk.ok()) return chunk.status();
      found = {chunk.value(), chunks_[chunk.value()].bytes};
    } else {
      found = find(first);
      if (chunks_[found.chunk].part && chunks_[found.chunk].part->table == kHole) {
        split_hole(found);
        found = find(first);
      }
    }
    change_from(found.chunk);
    RDMACOLL_RETURN_IF_ERROR(to_memory(found.chunk));
    Chunk& chunk = chunks_[found.chunk];
    const uint64_t most = first == bytes_ ? kPartBytes : chunk.bytes;
    const uint64_t count = std::min<uint64_t>(data.size(), most - found.at);
    const uint64_t end = std::max(found.at + count, chunk.bytes);
    RDMACOLL_RETURN_IF_ERROR(chunk.memory->resize(end, host_.blocks));
    std::memcpy(chunk.memory->data() + found.at, data.data(), count);
    bytes_ += end - std::exchange(chunk.bytes, end);
    first += count;
    data = data.subspan(count);
  }
  return Status();
}

bool Draft::takes(uint64_t first, uint64_t bytes) const {
  if (first > bytes_ || chunks_.empty()) return false;
  const Chunk& last = chunks_.back();
  const uint64_t begin = bytes_ - last.bytes;
  return first >= begin && last.memory != nullptr && last.writing == nullptr &&
         first - begin + bytes <= last.memory->room();
}

Status Draft::resize(uint64_t bytes) {
  if (bytes == bytes_) return Status();
  if (bytes > bytes_) {
    const uint64_t more = bytes - bytes_;
    change_from(chunks_.size());
    chunks_.push_back({.bytes = more, .part = Part{kHole, more}});
    bytes_ = bytes;
    return Status();
  }
  while (!chunks_.empty() && bytes_ - chunks_.back().bytes >= bytes) {
    bytes_ -= chunks_.back().bytes;
    chunks_.pop_back();
    change_from(chunks_.size());
  }
  if (bytes == bytes_) return Status();
  Chunk& last = chunks_.back();
  const uint64_t left = last.bytes - (bytes_ - bytes);
  if (last.part && last.part->table == kHole) {
    last.part->bytes = left;
  } else {
    RDMACOLL_RETURN_IF_ERROR(to_memory(chunks_.size() - 1));
    RDMACOLL_RETURN_IF_ERROR(last.memory->resize(left, host_.blocks));
  }
  change_from(chunks_.size() - 1);
  last.bytes = left;
  bytes_ = bytes;
  return Status();
}

// --- parts ---------------------------------------------------------------------------------------

Parts Draft::parts() const {
  Parts parts;
  for (const Chunk& chunk : chunks_) {
    RDMACOLL_CHECK(chunk.part.has_value());
    if (chunk.bytes > 0) parts.push_back(*chunk.part);
  }
  return parts;
}

std::optional<Parts> Draft::added() const {
  if (kept_ < before_) return std::nullopt;
  Parts all = parts();
  all.erase(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept_));
  return all;
}

std::vector<uint32_t> Draft::new_tables() const {
  std::vector<uint32_t> tables;
  for (const Chunk& chunk : chunks_) {
    if (chunk.part && own_.contains(chunk.part->table)) tables.push_back(chunk.part->table);
  }
  return tables;
}

std::vector<uint32_t> Draft::take_unused() {
  std::set<uint32_t> unused = own_;
  for (const Chunk& chunk : chunks_) {
    if (chunk.part) unused.erase(chunk.part->table);
  }
  for (const uint32_t table : unused) own_.erase(table);
  return {unused.begin(), unused.end()};
}

}  // namespace rdmacoll::files
