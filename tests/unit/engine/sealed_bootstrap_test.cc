// SealedBootstrap: records of this job, group, rank and exchange, and no others. Floor: tests.
#include "csrc/engine/connect/sealed_bootstrap.h"

#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "csrc/engine/connect/group_record.h"
#include "tests/unit/engine/world_of_threads.h"

namespace rdmacoll::sealed_bootstrap_test {
namespace {

using Records = std::vector<std::string>;
// What somebody between the ranks makes of all records of an exchange, the first or the second.
using Tamper = std::function<void(int exchange, Records& records)>;

constexpr int kWorld = 3;
const std::string kSecret = "the secret of the job";

class Tampered final : public Bootstrap {
 public:
  Tampered(Bootstrap& below, const Tamper& tamper) : below_(below), tamper_(tamper) {}
  Result<Records> all_gather(const std::string& mine, Deadline deadline) override {
    auto records = below_.all_gather(mine, deadline);
    if (records.ok()) tamper_(exchange_++, records.value());
    return records;
  }
  void decline(const std::string& mine) override { below_.decline(mine); }

 private:
  Bootstrap& below_;
  const Tamper& tamper_;
  int exchange_ = 0;
};

std::string record_of(int rank) { return "record of rank " + std::to_string(rank); }

// What each rank gets, or is told, when they have these secrets.
struct Outcome {
  std::vector<Records> records{kWorld};
  std::vector<Status> status{kWorld};
};

Outcome meet(
    const std::vector<std::string>& secrets, const Tamper& tamper = [](int, Records&) {},
    const std::vector<std::string>& groups = {"group", "group", "group"}) {
  ThreadBootstrap world(kWorld);
  Outcome outcome;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kWorld; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<size_t>(rank);
      const JobKey key = JobKey::load(secrets[at]).take();
      auto face = world.face(rank);
      Tampered below(face, tamper);
      SealedBootstrap sealed(below, key, groups[at], static_cast<uint32_t>(rank), kWorld);
      auto records = sealed.all_gather(record_of(rank), Deadline::after_ms(SteadyClock(), 10'000));
      outcome.status[at] = records.status();
      if (records.ok()) outcome.records[at] = records.take();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

void expect_refused(const Outcome& outcome, const std::string& why) {
  for (size_t rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(outcome.status[rank].code(), StatusCode::Mismatch) << "rank " << rank;
    const std::string& message = outcome.status[rank].message();
    EXPECT_NE(message.find(why), std::string::npos) << "rank " << rank << ": " << message;
    EXPECT_NE(message.find("RDMACOLL_SECRET_FILE"), std::string::npos) << message;
  }
}

TEST(SealedBootstrap, WithOneSecretOrNoneEverybodyGetsEveryRecord) {
  for (const std::string& secret : {kSecret, std::string()}) {
    const Outcome outcome = meet({secret, secret, secret});
    for (size_t rank = 0; rank < kWorld; ++rank) {
      EXPECT_TRUE(outcome.status[rank].ok()) << outcome.status[rank].message();
      EXPECT_EQ(outcome.records[rank], (Records{record_of(0), record_of(1), record_of(2)}));
    }
  }
}

TEST(SealedBootstrap, AnotherSecretOnOneRankIsAnErrorOnAll) {
  expect_refused(meet({kSecret, "the secret of another", kSecret}),
                 "is not signed with this job's secret");
}

TEST(SealedBootstrap, OneRankWithoutASecretIsAnErrorOnAll) {
  const Outcome outcome = meet({kSecret, "", kSecret});
  expect_refused(outcome, "secret of the job");
  EXPECT_TRUE(outcome.status[0].message().starts_with(
      "rank 1 has no secret of the job, and rank 0 has; all ranks must have the same secret"))
      << outcome.status[0].message();
  EXPECT_TRUE(outcome.status[1].message().starts_with(
      "rank 0 has a secret of the job, and rank 1 has none"))
      << outcome.status[1].message();
}

// One whose libcrypto refuses after the first exchange can still say so.
TEST(SealedBootstrap, ARankThatDeclinesInTheSecondExchangeIsHeard) {
  const Outcome outcome =
      meet(std::vector<std::string>(kWorld, kSecret), [](int exchange, Records& records) {
        if (exchange == 1) records[1] = decline_record("no signature");
      });
  for (size_t rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(outcome.status[rank].code(), StatusCode::PeerFailed);
    EXPECT_EQ(outcome.status[rank].message(),
              "cannot reach rank 1: it could not take part: no signature");
  }
}

TEST(SealedBootstrap, EveryByteOfARecordIsSigned) {
  const std::vector<std::string> secrets(kWorld, kSecret);
  const size_t bytes = 8 + sizeof(Mac) + record_of(0).size();
  for (size_t at = 0; at < bytes; ++at) {
    expect_refused(meet(secrets,
                        [at](int exchange, Records& records) {
                          if (exchange == 1) records[2][at] = static_cast<char>(~records[2][at]);
                        }),
                   "the record of rank 2 is not signed");
  }
  for (size_t length = 0; length < bytes; ++length) {
    expect_refused(meet(secrets,
                        [length](int exchange, Records& records) {
                          if (exchange == 1) records[0].resize(length);
                        }),
                   "the record of rank 0 is not signed");
  }
}

TEST(SealedBootstrap, ARecordIsGoodForItsRankOnly) {
  expect_refused(meet(std::vector<std::string>(kWorld, kSecret),
                      [](int exchange, Records& records) {
                        if (exchange == 1) std::swap(records[0], records[1]);
                      }),
                 "the record of rank 0 is not signed");
}

TEST(SealedBootstrap, ARecordIsGoodForItsGroupOnly) {
  expect_refused(meet(std::vector<std::string>(kWorld, kSecret), [](int, Records&) {},
                      {"one", "other", "other"}),
                 "is not signed");
}

// Whoever kept all that an earlier exchange with the same secret said can say it again, nonces too.
TEST(SealedBootstrap, AnEarlierExchangeIsNotGoodAgain) {
  const std::vector<std::string> secrets(kWorld, kSecret);
  std::mutex mutex;
  std::vector<Records> kept(2);
  const Outcome first = meet(secrets, [&](int exchange, Records& records) {
    const std::lock_guard lock(mutex);
    kept[static_cast<size_t>(exchange)] = records;
  });
  ASSERT_TRUE(first.status[0].ok());
  const auto replay = [&](bool nonces, size_t of_rank) {
    return meet(secrets, [&, nonces, of_rank](int exchange, Records& records) {
      if (exchange == 1 || nonces) {
        records[of_rank] = kept[static_cast<size_t>(exchange)][of_rank];
      }
    });
  };
  expect_refused(replay(false, 1), "the record of rank 1 is not signed");
  const Outcome with_nonces = replay(true, 1);
  for (const Status& status : with_nonces.status) EXPECT_EQ(status.code(), StatusCode::Mismatch);
  expect_refused(
      meet(secrets,
           [&](int exchange, Records& records) { records = kept[static_cast<size_t>(exchange)]; }),
      "is not signed");
}

TEST(SealedBootstrap, WhatARankDeclinesWithIsHeard) {
  ThreadBootstrap world(2);
  const JobKey key = JobKey::load(kSecret).take();
  const std::string group = "group";
  auto faces = std::vector{world.face(0), world.face(1)};
  std::thread other([&] {
    SealedBootstrap(faces[1], key, group, 1, 2).decline(decline_record("there is no device"));
  });
  SealedBootstrap sealed(faces[0], key, group, 0, 2);
  const auto records = sealed.all_gather("mine", Deadline::after_ms(SteadyClock(), 10'000));
  other.join();
  EXPECT_EQ(records.status().code(), StatusCode::PeerFailed);
  EXPECT_EQ(records.status().message(),
            "cannot reach rank 1: it could not take part: there is no device");
}

TEST(SealedBootstrap, GroupsAreMadeOverIt) {
  Config config = config_of_environment();
  config.secret.text = kSecret;
  WorldOfThreads(kWorld, config).run([](Communicator& communicator) {
    finish(communicator, communicator.barrier());
  });
}

}  // namespace
}  // namespace rdmacoll::sealed_bootstrap_test
