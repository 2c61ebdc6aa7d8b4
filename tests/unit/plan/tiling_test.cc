// Tiling: exhaustively for small sizes, every byte of every block is in exactly one piece.
#include "csrc/plan/tiling.h"

#include <gtest/gtest.h>

namespace rdmacoll::tiling_test {
namespace {

Plan plan_of(uint16_t blocks, uint16_t slot_blocks, uint16_t stage_blocks = 0) {
  Plan plan;
  plan.blocks = blocks;
  plan.slot_blocks = slot_blocks;
  plan.stage_blocks = stage_blocks;
  return plan;
}

BlockRange range(int first, int count) {
  return {static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
}

TEST(TilingTest, ContiguousPiecesCoverTheBufferOnceAndInOrder) {
  for (uint16_t blocks = 1; blocks <= 5; ++blocks) {
    for (uint64_t element : {1, 2}) {
      const uint64_t grain = 2 * element;
      const uint64_t slot_bytes = 4 * element * blocks;
      for (uint64_t bytes = 0; bytes <= 3 * slot_bytes; bytes += element) {
        const Tiling tiling =
            Tiling::contiguous(bytes, plan_of(blocks, blocks), slot_bytes, 0, grain);
        uint64_t next = 0;
        for (uint64_t tile = 0; tile < tiling.tiles(range(0, blocks)); ++tile) {
          for (int b = 0; b < blocks; ++b) {
            const Piece piece = tiling.piece(range(b, 1), tile);
            EXPECT_EQ(piece.offset, next);
            EXPECT_LE(piece.bytes, slot_bytes / blocks);
            EXPECT_EQ(piece.bytes % element, 0u);
            next += piece.bytes;
          }
        }
        EXPECT_EQ(next, bytes) << blocks << " blocks";
      }
    }
  }
}

TEST(TilingTest, ContiguousRangesArePiecesOfTheirBlocksInARow) {
  const uint16_t blocks = 6;
  for (uint64_t bytes = 0; bytes <= 60; ++bytes) {
    const Tiling tiling = Tiling::contiguous(bytes, plan_of(blocks, 3), 12, 0, 2);
    for (int first = 0; first < blocks; ++first) {
      for (int count = 1; first + count <= blocks; ++count) {
        for (uint64_t tile = 0; tile < 4; ++tile) {
          uint64_t sum = 0;
          for (int b = first; b < first + count; ++b) {
            sum += tiling.piece(range(b, 1), tile).bytes;
          }
          const Piece piece = tiling.piece(range(first, count), tile);
          EXPECT_EQ(piece.bytes, sum);
          if (sum == 0) continue;
          EXPECT_EQ(piece.offset, tiling.piece(range(first, 1), tile).offset);
        }
      }
    }
  }
}

TEST(TilingTest, TheLastWindowIsSplitEvenlyAndTheRaggedEndIsLast) {
  // 2 windows of 4 x 8 bytes, then 7 grains of 2 with the last one ragged: 2 2 2 1 grains.
  const Tiling tiling = Tiling::contiguous(2 * 32 + 13, plan_of(4, 1), 8, 0, 2);
  const uint64_t expected[] = {4, 4, 4, 1};
  for (int b = 0; b < 4; ++b) EXPECT_EQ(tiling.piece(range(b, 1), 2).bytes, expected[b]);
}

TEST(TilingTest, EarlyBlocksAreLargerAndLateOnesMayBeEmpty) {
  const Tiling tiling = Tiling::contiguous(3, plan_of(4, 1), 8, 0, 2);
  const uint64_t expected[] = {2, 1, 0, 0};
  for (int b = 0; b < 4; ++b) EXPECT_EQ(tiling.piece(range(b, 1), 0).bytes, expected[b]);
  EXPECT_EQ(tiling.tiles(range(1, 1)), 1u);
  EXPECT_EQ(tiling.tiles(range(2, 2)), 0u);
}

TEST(TilingTest, ATileCountIsThePrefixOfTilesThatHaveBytes) {
  const std::vector<uint64_t> sizes{0, 1, 8, 9, 30};
  for (uint64_t bytes = 0; bytes <= 60; ++bytes) {
    const Tiling contiguous = Tiling::contiguous(bytes, plan_of(5, 1), 4, 0, 2);
    const Tiling scattered = Tiling::scattered(sizes, plan_of(5, 1), 4, 0, 2);
    for (int first = 0; first < 5; ++first) {
      for (int count = 1; first + count <= 5; ++count) {
        for (uint64_t tile = 0; tile < 10; ++tile) {
          for (const Tiling& tiling : {contiguous, scattered}) {
            EXPECT_EQ(tiling.piece(range(first, count), tile).bytes != 0,
                      tile < tiling.tiles(range(first, count)));
          }
        }
      }
    }
  }
}

TEST(TilingTest, ScatteredPiecesCoverEachBlock) {
  const std::vector<uint64_t> sizes{0, 1, 7, 8, 9, 25};
  const Tiling tiling = Tiling::scattered(sizes, plan_of(6, 1), 9, 0, 2);  // chunks of 8
  for (int b = 0; b < 6; ++b) {
    uint64_t next = 0;
    for (uint64_t tile = 0; tile < tiling.tiles(range(b, 1)); ++tile) {
      const Piece piece = tiling.piece(range(b, 1), tile);
      EXPECT_EQ(piece.offset, next);
      EXPECT_LE(piece.bytes, 8u);
      next += piece.bytes;
    }
    EXPECT_EQ(next, sizes[b]);
  }
}

TEST(TilingTest, AStageHoldsAllBlocksOfATileWithoutOverlap) {
  const std::vector<uint64_t> sizes{3, 8, 20, 1};
  const Tiling scattered = Tiling::scattered(sizes, plan_of(4, 0, 4), 100, 35, 2);
  const Tiling contiguous = Tiling::contiguous(77, plan_of(4, 0, 4), 100, 35, 2);
  for (const Tiling& tiling : {scattered, contiguous}) {
    for (uint64_t tile = 0; tile < 4; ++tile) {
      uint64_t end = 0;
      for (int b = 0; b < 4; ++b) {
        const uint64_t bytes = tiling.piece(range(b, 1), tile).bytes;
        if (bytes == 0) continue;
        EXPECT_GE(tiling.stage_offset(b, tile), end);
        end = tiling.stage_offset(b, tile) + bytes;
      }
      EXPECT_LE(end, 35u);
    }
  }
}

TEST(TilingTest, AStageHoldsTheBlocksOfAGroup) {
  const std::vector<uint64_t> sizes{3, 8, 20, 1, 9};
  const Tiling scattered = Tiling::scattered(sizes, plan_of(5, 0, 2), 100, 17, 2);  // chunks of 8
  const Tiling contiguous = Tiling::contiguous(77, plan_of(5, 0, 2), 100, 17, 2);
  for (const Tiling& tiling : {scattered, contiguous}) {
    for (uint64_t tile = 0; tile < 3; ++tile) {
      for (int b = 0; b < 5; ++b) {
        const uint64_t ahead = b % 2 == 0 ? 0 : tiling.piece(range(b - 1, 1), tile).bytes;
        const uint64_t bytes = tiling.piece(range(b, 1), tile).bytes;
        if (bytes == 0) continue;
        EXPECT_GE(tiling.stage_offset(b, tile), ahead);
        EXPECT_LE(tiling.stage_offset(b, tile), b % 2 * 8u);
        EXPECT_LE(tiling.stage_offset(b, tile) + bytes, 17u);
      }
    }
  }
}

TEST(TilingTest, TheTighterOfSlotAndStageBoundsTheChunk) {
  const auto chunk = [](const Plan& plan) {
    return Tiling::contiguous(1000, plan, 60, 64, 4).piece(range(0, 1), 0).bytes;
  };
  EXPECT_EQ(chunk(plan_of(4, 2, 0)), 28u);  // 60 / 2, in grains
  EXPECT_EQ(chunk(plan_of(4, 0, 4)), 16u);
  EXPECT_EQ(chunk(plan_of(4, 1, 4)), 16u);
  EXPECT_EQ(chunk(plan_of(4, 10, 4)), 4u);
  EXPECT_EQ(chunk(plan_of(4, 0, 0)), 60u);
}

TEST(TilingTest, ATokenHasOneTileAndNoBytes) {
  const Tiling tiling = Tiling::contiguous(0, plan_of(1, 0), 8, 8, 2);
  EXPECT_EQ(tiling.tiles(range(0, 0)), 1u);
  EXPECT_EQ(tiling.piece(range(0, 0), 0).bytes, 0u);
  EXPECT_EQ(tiling.tiles(range(0, 1)), 0u);
}

TEST(TilingTest, PartsOfAMessageFollowEachOther) {
  const std::vector<uint64_t> sizes{7, 3, 0, 5, 2};
  const Tiling tiling = Tiling::scattered(sizes, plan_of(5, 4), 16, 0, 1);
  const BlockRange message = range(1, 4);
  for (uint64_t tile = 0; tile < 2; ++tile) {
    const uint64_t all = tiling.piece(message, tile).bytes;
    uint64_t next = 0;
    for (int b = 1; b < 5; ++b) {
      const uint64_t bytes = tiling.piece(range(b, 1), tile).bytes;
      const Operand part{.buffer = Buffer::Slot, .blocks = range(b, 1), .message = message};
      const Operand whole{.buffer = Buffer::Slot, .blocks = range(b, 1)};
      EXPECT_EQ(tiling.in_message(part, bytes, tile).offset, next);
      EXPECT_EQ(tiling.in_message(part, bytes, tile).bytes, all);
      EXPECT_EQ(tiling.in_message(whole, bytes, tile).offset, 0u);
      EXPECT_EQ(tiling.in_message(whole, bytes, tile).bytes, bytes);
      next += bytes;
    }
    EXPECT_EQ(next, all);
  }
}

}  // namespace
}  // namespace rdmacoll::tiling_test
