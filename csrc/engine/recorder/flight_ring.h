// FlightRing: the last operations of a process, in memory taken once, so that noting one allocates
// nothing and calls nobody. Floor: engine/recorder. Thread: snapshot() any, at any time; the rest
// belongs to the driver, of which a process has one at a time.
//
// A snapshot must be possible while the driver stands still, wherever that is, so there is no lock.
// Each slot is a seqlock of atomic words: its version is odd while the driver writes, and a reader
// that saw it odd or changed reads again. The words are stored with release and loaded with acquire
// (plain moves on x86): a reader that saw a new word sees the odd version as well, so no fence is
// needed, which the thread sanitizer would not understand.
//
// A slot whose operation is in flight is not reused: what hangs is what everybody wants to see.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rdmacoll {

// Queued: behind others of its group or session, or, point-to-point, until the other side has
// matched it.
enum class FlightState : uint8_t { Queued, Running, Done, Failed };

struct FlightRecord {
  // Of the group's collectives, of its point-to-point operations, or of all that a session does.
  uint64_t sequence = 0;
  uint32_t group = 0;  // or a session
  uint8_t kind = 0;    // a Collective, or of flight_kind.h
  uint8_t algorithm = 0;
  uint8_t dtype = 0;
  uint8_t op = 0;
  uint64_t bytes = 0;
  int64_t queued_ns = 0;
  int64_t started_ns = 0;  // 0: not yet
  int64_t ended_ns = 0;
  int32_t tag = 0;
  int16_t peer = -1;  // the root of a collective
  FlightState state = FlightState::Queued;
};

class FlightRing {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit FlightRing(size_t capacity)
      : slots_(std::make_unique<Slot[]>(capacity)), size_(capacity) {}

  // --- the driver -----------------------------------------------------------------------------
  // The slot of a new record; kNone: too many operations are in flight to note this one.
  uint32_t add(const FlightRecord& record);
  void start(uint32_t slot, int64_t now_ns, int peer);
  void end(uint32_t slot, int64_t now_ns, bool ok);

  // --- any thread -----------------------------------------------------------------------------
  // In the order in which they were added.
  std::vector<FlightRecord> snapshot() const;
  uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }

 private:
  // The words of a record. What and Tail are several fields, put together by shifts: written as
  // bytes and read as a word they would stall the store buffer.
  enum Word { Sequence, What, Bytes, Queued, Started, Ended, Tail, kWords };

  struct alignas(64) Slot {
    std::atomic<uint64_t> version{0};  // 8 x the record's number + 2 x its changes; 0: empty
    std::array<std::atomic<uint64_t>, kWords> words{};

    // The driver's; any thread's between begin() and end().
    uint64_t get(Word word) const { return words[word].load(std::memory_order_acquire); }
    void set(Word word, uint64_t value) { words[word].store(value, std::memory_order_release); }
    void begin(uint64_t next) { version.store(next | 1, std::memory_order_relaxed); }
    void end(uint64_t next) { version.store(next, std::memory_order_release); }
    uint64_t next_version() const { return version.load(std::memory_order_relaxed) + 2; }
  };
  static_assert(sizeof(Slot) == 64);

  uint32_t next_free();
  static FlightRecord read(const Slot& slot);

  std::unique_ptr<Slot[]> slots_;
  size_t size_;
  size_t next_ = 0;
  uint64_t added_ = 0;
  std::atomic<uint64_t> left_out_{0};
};

}  // namespace rdmacoll
