// FakePair: two contexts on an emulated network with a connection between them, and what tests of
// the emulation do with it, in plain verbs.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/fake_verbs/network.h"

namespace rdmacoll::fake {

inline constexpr uint32_t kSends = 8;
inline constexpr uint32_t kReceives = 4;
inline constexpr size_t kBytes = 64 * 1024;

// One side.
struct FakeSide {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* queue = nullptr;
  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  ibv_mr* region = nullptr;
  ibv_qp* queue_pair = nullptr;

  void open(const VerbsTable& table, size_t device);
  void make_connection(const VerbsTable& table);
  int initialise(const VerbsTable& table, unsigned access = kAll) const;
  int receive_from(const VerbsTable& table, const FakeSide& other) const;
  int start(const VerbsTable& table) const;
  void close(const VerbsTable& table);

  ibv_sge piece(size_t offset, size_t bytes) const {
    return {reinterpret_cast<uint64_t>(memory.data() + offset), static_cast<uint32_t>(bytes),
            region->lkey};
  }
  ibv_gid gid(const VerbsTable& table) const {
    ibv_gid_entry entry{};
    table.query_gid_ex(context, 1, 3, &entry, 0, sizeof entry);
    return entry.gid;
  }
  static constexpr unsigned kAll =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
};

struct FakePair {
  // Both sides on one device, or one each.
  explicit FakePair(uint64_t seed = 1, bool connected = true, int devices = 2);
  ~FakePair();

  // A write request from side 0; further ones are chained by the caller.
  ibv_send_wr write(ibv_sge* piece, size_t to, uint64_t id, unsigned flags = 0) const;
  int send(ibv_send_wr* first) const {
    ibv_send_wr* bad = nullptr;
    return table.post_send(side[0].queue_pair, first, &bad);
  }
  int post_receive(int of, uint64_t id) const {
    ibv_recv_wr request{};
    request.wr_id = id;
    ibv_recv_wr* bad = nullptr;
    return table.post_recv(side[of].queue_pair, &request, &bad);
  }
  // The next completion; it comes, or the test's timeout does.
  ibv_wc next(int of) const {
    ibv_wc completion{};
    while (table.poll_cq(side[of].queue, 1, &completion) == 0) std::this_thread::yield();
    return completion;
  }

  static NetworkSpec spec(uint64_t seed, int devices) {
    NetworkSpec made;
    made.seed = seed;
    made.devices.clear();
    for (int i = 0; i < devices; ++i) made.devices.push_back(roce_device(i));
    return made;
  }

  FakeNetwork network;
  const VerbsTable table = FakeNetwork::table();
  FakeSide side[2];
};

}  // namespace rdmacoll::fake
