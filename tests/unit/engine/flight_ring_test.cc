// FlightRing: wrapping, states, and snapshots while the driver writes.
#include "csrc/engine/recorder/flight_ring.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace rdmacoll::flight_ring_test {
namespace {

FlightRecord record_of(uint64_t sequence) {
  FlightRecord record;
  record.sequence = sequence;
  record.bytes = 3 * sequence;
  record.queued_ns = static_cast<int64_t>(5 * sequence);
  record.tag = static_cast<int32_t>(7 * sequence);
  return record;
}

std::vector<uint64_t> sequences(const FlightRing& ring) {
  std::vector<uint64_t> found;
  for (const FlightRecord& record : ring.snapshot()) found.push_back(record.sequence);
  return found;
}

TEST(FlightRing, HoldsTheLastOperationsInTheirOrder) {
  FlightRing ring(4);
  EXPECT_TRUE(ring.snapshot().empty());
  for (uint64_t i = 1; i <= 10; ++i) ring.end(ring.add(record_of(i)), 100, true);
  EXPECT_EQ(sequences(ring), (std::vector<uint64_t>{7, 8, 9, 10}));
}

TEST(FlightRing, ARecordGoesThroughItsStates) {
  FlightRing ring(2);
  const uint32_t slot = ring.add(record_of(1));
  EXPECT_EQ(ring.snapshot()[0].state, FlightState::Queued);
  ring.start(slot, 20, 3);
  FlightRecord record = ring.snapshot()[0];
  EXPECT_EQ(record.state, FlightState::Running);
  EXPECT_EQ(record.started_ns, 20);
  EXPECT_EQ(record.peer, 3);
  ring.end(slot, 30, false);
  record = ring.snapshot()[0];
  EXPECT_EQ(record.state, FlightState::Failed);
  EXPECT_EQ(record.ended_ns, 30);
  EXPECT_EQ(record.bytes, 3u);
  EXPECT_EQ(record.tag, 7);
}

TEST(FlightRing, WhatIsInFlightIsKeptWhateverComesAfterIt) {
  FlightRing ring(4);
  const uint32_t hangs = ring.add(record_of(1));
  for (uint64_t i = 2; i <= 50; ++i) ring.end(ring.add(record_of(i)), 100, true);
  EXPECT_EQ(sequences(ring), (std::vector<uint64_t>{1, 48, 49, 50}));
  ring.end(hangs, 100, true);
  for (uint64_t i = 51; i <= 54; ++i) ring.end(ring.add(record_of(i)), 100, true);
  EXPECT_EQ(sequences(ring), (std::vector<uint64_t>{51, 52, 53, 54}));
}

TEST(FlightRing, MoreInFlightThanThereIsRoomForIsCounted) {
  FlightRing ring(2);
  const uint32_t first = ring.add(record_of(1));
  ring.add(record_of(2));
  EXPECT_EQ(ring.add(record_of(3)), FlightRing::kNone);
  EXPECT_EQ(ring.left_out(), 1u);
  EXPECT_EQ(sequences(ring), (std::vector<uint64_t>{1, 2}));
  ring.end(first, 100, true);
  ring.add(record_of(4));
  EXPECT_EQ(sequences(ring), (std::vector<uint64_t>{2, 4}));
}

TEST(FlightRing, ASnapshotSeesNoRecordHalfWritten) {
  FlightRing ring(8);
  std::atomic<uint64_t> written{0};
  std::atomic<bool> stop{false};
  std::thread driver([&] {
    for (uint64_t i = 1; !stop.load(std::memory_order_relaxed); ++i) {
      const uint32_t slot = ring.add(record_of(i));
      ring.start(slot, static_cast<int64_t>(11 * i), -1);
      ring.end(slot, static_cast<int64_t>(13 * i), true);
      written.store(i, std::memory_order_relaxed);
    }
  });
  for (int overlapping = 0; overlapping < 300;) {
    const uint64_t before = written.load(std::memory_order_relaxed);
    const std::vector<FlightRecord> records = ring.snapshot();
    overlapping += written.load(std::memory_order_relaxed) != before;
    for (const FlightRecord& r : records) {
      const auto sequence = static_cast<int64_t>(r.sequence);
      EXPECT_EQ(static_cast<int64_t>(r.bytes), 3 * sequence);
      EXPECT_EQ(r.queued_ns, 5 * sequence);
      EXPECT_EQ(r.tag, static_cast<int32_t>(7 * sequence));
      EXPECT_EQ(r.started_ns, r.state == FlightState::Queued ? 0 : 11 * sequence);
      EXPECT_EQ(r.ended_ns, r.state == FlightState::Done ? 13 * sequence : 0);
    }
  }
  stop.store(true);
  driver.join();
}

}  // namespace
}  // namespace rdmacoll::flight_ring_test
