// Operations by name: what goes over the wire, what is refused in which words, and what a process
// that speaks another language gets. That ranks come to one order is for the simulation.
#include "csrc/order/sequencer.h"

#include <gtest/gtest.h>

#include "csrc/order/submitter.h"

namespace rdmacoll::sequencer_test {
namespace {

NamedRequest all_reduce_of(const std::string& name, std::vector<int64_t> dims) {
  NamedRequest request;
  request.name = name;
  request.op = NamedOp::Sum;
  request.tensors = {{"float32", std::move(dims)}};
  return request;
}

// Two ranks and a sequencer, whose messages arrive at once.
struct Pair {
  Sequencer sequencer{2};
  Submitter ranks[2];
  size_t bytes_said = 0;     // by the last submission
  size_t bytes_decided = 0;  // by the last decisions

  void submit(uint32_t rank, const NamedRequest& request) {
    Bytes message;
    const Status submitted = ranks[rank].submit(request, message);
    ASSERT_TRUE(submitted.ok()) << submitted.message();
    bytes_said = message.size();
    ASSERT_TRUE(sequencer.take(rank, message).ok());
  }
  void join(uint32_t rank) {
    Bytes message;
    ASSERT_TRUE(ranks[rank].join(message).ok());
    ASSERT_TRUE(sequencer.take(rank, message).ok());
  }
  // What rank 1 is told.
  Late ask() {
    Bytes message;
    Submitter::ask(message);
    EXPECT_TRUE(sequencer.take(1, message).ok());
    const std::vector<Decision> decisions = decide();
    EXPECT_EQ(decisions.size(), 1U);
    EXPECT_EQ(decisions.at(0).what, Decision::What::Late);
    return decisions.at(0).late;
  }
  // As rank 1 hears them; both end what they were told of.
  std::vector<Decision> decide() {
    const Bytes message = sequencer.decisions();
    bytes_decided = message.size();
    std::vector<Decision> decisions;
    for (Submitter& rank : ranks) {
      decisions.clear();
      EXPECT_TRUE(rank.take(message, decisions).ok());
      for (const Decision& decision : decisions) {
        if (decision.is_own) rank.end(decision.name);
      }
    }
    return decisions;
  }
  std::vector<Decision> run(const NamedRequest& one, const NamedRequest& other) {
    submit(0, one);
    submit(1, other);
    return decide();
  }
};

TEST(Sequencer, ANameThatIsKnownTakesFewBytes) {
  Pair pair;
  const NamedRequest request = all_reduce_of("a name of some length", {512, 512});
  ASSERT_EQ(pair.run(request, request).size(), 1U);
  EXPECT_GT(pair.bytes_said, 60U);
  ASSERT_EQ(pair.run(request, request).size(), 1U);
  EXPECT_LE(pair.bytes_said, 24U);  // it fits into one line
  EXPECT_LE(pair.bytes_decided, 24U);
  ASSERT_EQ(pair.run(all_reduce_of(request.name, {3}), all_reduce_of(request.name, {3})).size(),
            1U);
  EXPECT_GT(pair.bytes_said, 60U) << "it has changed";
}

TEST(Sequencer, WhatIsNotKeptIsSaidInFullAndForgotten) {
  Pair pair;
  NamedRequest request = all_reduce_of("once", {1});
  request.is_kept = false;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.run(request, request).size(), 1U);
    EXPECT_GT(pair.bytes_said, 40U);
  }
}

TEST(Sequencer, MoreNamesThanAreKeptWork) {
  Pair pair;
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kSlotsMax + 10; ++i) {
      const NamedRequest request = all_reduce_of("name " + std::to_string(i), {1});
      ASSERT_EQ(pair.run(request, request).size(), 1U);
    }
  }
}

TEST(Sequencer, SaysWhoDiffersAndInWhat) {
  const NamedRequest one = all_reduce_of("grad", {2, 3});
  std::vector<std::pair<NamedRequest, std::string>> others(7, {one, ""});
  others[0].first.tensors[0].dims = {2, 4};
  others[0].second =
      "Mismatched allreduce tensor shapes under the name \"grad\": rank 0 sent a "
      "tensor of shape [2, 3], but rank 1 sent a tensor of shape [2, 4]";
  others[1].first.tensors[0].dtype = "int64";
  others[1].second = "rank 0 sent float32, but rank 1 sent int64";
  others[2].first.kind = NamedKind::AllGather;
  others[2].second = "rank 0 sent allreduce, but rank 1 sent allgather";
  others[3].first.op = NamedOp::Max;
  others[3].second = "rank 0 sent Sum, but rank 1 sent Max";
  others[4].first.prescale = 0.5;
  others[4].second = "Mismatched prescale factors";
  others[5].first.root = 1;
  others[5].second = "root rank 0, but rank 1 sent root rank 1";
  others[6].first.tensors.push_back(one.tensors[0]);
  others[6].second = "rank 0 sent 1, but rank 1 sent 2";
  for (const auto& [other, words] : others) {
    Pair pair;
    const auto decisions = pair.run(one, other);
    ASSERT_EQ(decisions.size(), 1U);
    EXPECT_EQ(decisions[0].what, Decision::What::Refused);
    EXPECT_EQ(decisions[0].why.code(), StatusCode::Mismatch);
    EXPECT_NE(decisions[0].why.message().find(words), std::string::npos)
        << decisions[0].why.message();
    EXPECT_EQ(pair.run(one, one)[0].what, Decision::What::Run) << "the next one works";
  }
}

TEST(Sequencer, WhoHasJoinedIsWaitedForNoMore) {
  Pair pair;
  const NamedRequest request = all_reduce_of("grad", {2});
  pair.join(1);
  pair.submit(0, request);
  auto decisions = pair.decide();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_FALSE(decisions[0].is_own);
  EXPECT_EQ(decisions[0].agreed->request, request);

  NamedRequest gather = request;
  gather.kind = NamedKind::AllGather;
  pair.submit(0, gather);
  EXPECT_TRUE(pair.decide().empty()) << "it is refused on the rank that has asked for it";

  pair.join(0);
  decisions = pair.decide();
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].what, Decision::What::JoinEnded);
  EXPECT_EQ(decisions[0].last_joined, 0U);
  EXPECT_EQ(pair.run(request, request).size(), 1U);
}

TEST(Sequencer, SaysForWhomANameWaits) {
  Pair pair;
  pair.submit(1, all_reduce_of("grad", {2}));
  const Late late = pair.ask();
  EXPECT_EQ(late.asked_by, 1U);
  ASSERT_EQ(late.names.size(), 1U);
  EXPECT_EQ(late.names[0].name, "grad");
  EXPECT_EQ(late.names[0].missing, std::vector<uint32_t>{0});
  EXPECT_EQ(late.more, 0U);
  pair.submit(0, all_reduce_of("grad", {2}));
  pair.decide();
  EXPECT_TRUE(pair.ask().names.empty());
}

TEST(Sequencer, MissesNobodyWhoHasJoined) {
  Sequencer sequencer(3);
  Submitter ranks[2];
  Bytes submitted, joined, asked;
  ASSERT_TRUE(ranks[0].submit(all_reduce_of("grad", {2}), submitted).ok());
  ASSERT_TRUE(ranks[1].join(joined).ok());
  Submitter::ask(asked);
  ASSERT_TRUE(sequencer.take(0, submitted).ok());
  ASSERT_TRUE(sequencer.take(1, joined).ok());
  ASSERT_TRUE(sequencer.take(0, asked).ok());
  std::vector<Decision> decisions;
  ASSERT_TRUE(ranks[0].take(sequencer.decisions(), decisions).ok());
  ASSERT_EQ(decisions.size(), 1U);
  EXPECT_EQ(decisions[0].late.names.at(0).missing, std::vector<uint32_t>{2});
}

TEST(Sequencer, NamesTheFirstOfManyThatWait) {
  Pair pair;
  for (size_t i = 0; i < kLateNamesMax + 5; ++i) {
    pair.submit(1, all_reduce_of("grad " + std::to_string(i), {2}));
  }
  const Late late = pair.ask();
  EXPECT_EQ(late.names.size(), kLateNamesMax);
  EXPECT_EQ(late.more, 5U);
}

TEST(Submitter, RefusesANameThatIsInFlight) {
  Submitter submitter;
  Bytes message;
  ASSERT_TRUE(submitter.submit(all_reduce_of("grad", {1}), message).ok());
  const Status again = submitter.submit(all_reduce_of("grad", {1}), message);
  EXPECT_EQ(again.code(), StatusCode::InvalidArgument);
  EXPECT_NE(again.message().find("\"grad\""), std::string::npos);
  ASSERT_TRUE(submitter.join(message).ok());
  EXPECT_EQ(submitter.join(message).code(), StatusCode::InvalidArgument);
  EXPECT_EQ(submitter.submit(all_reduce_of("late", {1}), message).code(),
            StatusCode::InvalidArgument);
}

// What is cut off, or no part of this protocol, is an error and nothing worse.
TEST(Sequencer, RefusesWhatNoRankSays) {
  Bytes message;
  Submitter submitter;
  ASSERT_TRUE(submitter.submit(all_reduce_of("grad", {1, 2, 3}), message).ok());
  for (size_t bytes = 1; bytes < message.size(); ++bytes) {
    Sequencer sequencer(1);
    const Bytes part(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes));
    EXPECT_FALSE(sequencer.take(0, part).ok()) << bytes;
  }
  Sequencer sequencer(1);
  EXPECT_FALSE(sequencer.take(0, Bytes{std::byte{77}}).ok());
  Bytes unknown;
  ByteWriter writer(unknown);
  writer.put(ToSequencer::Ready);
  SlotSet slots;
  slots.add(5);
  slots.write(writer);
  EXPECT_FALSE(sequencer.take(0, unknown).ok()) << "nobody has been told of slot 5";
  std::vector<Decision> decisions;
  EXPECT_FALSE(submitter.take(unknown, decisions).ok());
}

template <typename T>
Bytes written(const T& value) {
  Bytes bytes;
  ByteWriter writer(bytes);
  write(writer, value);
  return bytes;
}

NamedRequest exchange_of(std::vector<int64_t> splits) {
  NamedRequest request = all_reduce_of("parts", {3});
  request.kind = NamedKind::AllToAll;
  request.splits = std::move(splits);
  return request;
}

TEST(Messages, WhatWasWrittenIsRead) {
  NamedRequest request = all_reduce_of("grad", {});
  request.tensors.push_back({"", {0, 7, int64_t{1} << 60}});
  request.is_kept = false;
  request.root = -3;
  request.postscale = -0.25;
  NamedRequest exchange = exchange_of({1, 2});
  for (const Agreed& agreed : {Agreed{request, {}}, Agreed{exchange, {{1, 2}, {0, 4}}}}) {
    const Bytes bytes = written(agreed.request);
    ByteReader reader(bytes);
    EXPECT_EQ(read_named_request(reader), agreed.request);
    EXPECT_TRUE(reader.is_complete());
    const Bytes all = written(agreed);
    ByteReader of_all(all);
    EXPECT_EQ(read_agreed(of_all), agreed);
    EXPECT_TRUE(of_all.is_complete());
  }
}

// The gathered scalar had ended the process that was told of it: it has no rows.
TEST(Messages, WhatMakesNoSenseIsNotRead) {
  NamedRequest scalar = all_reduce_of("grad", {});
  scalar.kind = NamedKind::AllGather;
  NamedRequest long_one = scalar;
  long_one.tensors[0].dims = {kRowsMax + 1};
  NamedRequest split = all_reduce_of("grad", {1});
  split.splits = {1};
  NamedRequest unknown = all_reduce_of("grad", {1});
  unknown.kind = static_cast<NamedKind>(static_cast<uint8_t>(kLastNamedKind) + 1);
  for (const NamedRequest& request :
       {scalar, long_one, split, unknown, exchange_of({1, -1}), all_reduce_of("grad", {-1})}) {
    const Bytes bytes = written(request);
    ByteReader reader(bytes);
    read_named_request(reader);
    EXPECT_FALSE(reader.is_good());
  }
  for (const Agreed& agreed :
       {Agreed{all_reduce_of("grad", {1}), {{1}}}, Agreed{exchange_of({1, 2}), {{1, 2}, {3}}},
        Agreed{exchange_of({1, 2}), {{1, 2}, {-1, 1}}}}) {
    const Bytes bytes = written(agreed);
    ByteReader reader(bytes);
    read_agreed(reader);
    EXPECT_FALSE(reader.is_good());
  }
  Bytes message;
  Submitter submitter;
  EXPECT_EQ(submitter.submit(scalar, message).code(), StatusCode::InvalidArgument);
  EXPECT_TRUE(message.empty());
}

TEST(Messages, SlotsAreSaidOnceAndInOrder) {
  for (const auto& [words, is_good] :
       {std::pair{std::vector<std::pair<uint8_t, uint64_t>>{{0, 1}, {127, ~uint64_t{0}}}, true},
        {{{128, 1}}, false},
        {{{1, 1}, {1, 2}}, false},
        {{{1, 1}, {0, 1}}, false},
        {{{1, 0}}, false}}) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put_count(words.size());
    for (const auto& [word, bits] : words) {
      writer.put(word);
      writer.put(bits);
    }
    ByteReader reader(bytes);
    EXPECT_EQ(SlotSet::read(reader).empty(), !is_good);
    EXPECT_EQ(reader.is_good(), is_good);
  }
}

TEST(Sequencer, RefusesSplitsThatAreNotOfTheGroup) {
  Bytes message;
  Submitter submitter;
  ASSERT_TRUE(submitter.submit(exchange_of({1, 1, 1}), message).ok());
  EXPECT_FALSE(Sequencer(2).take(1, message).ok());
  EXPECT_TRUE(Sequencer(3).take(1, message).ok());
}

// What another rank says of a name is shown to people, and obeyed by no terminal.
TEST(Sequencer, ShowsNamesAsTheyMayBeShown) {
  Pair pair;
  const std::string name = "\x1b[2J" + std::string(10'000, 'n');
  pair.submit(1, all_reduce_of(name, {2}));
  const std::string shown = pair.ask().names.at(0).name;
  EXPECT_TRUE(shown.starts_with("\\x1b[2Jnnn")) << shown;
  EXPECT_LT(shown.size(), 600U);
  pair.submit(0, all_reduce_of(name, std::vector<int64_t>(1000, 3)));
  const std::string why = pair.decide().at(0).why.message();
  EXPECT_EQ(why.find('\x1b'), std::string::npos);
  EXPECT_NE(why.find("but rank 1 sent a tensor of shape [2]"), std::string::npos) << why;
  EXPECT_LT(why.size(), 2000U);
}

// Each of these had a rank run what it has not submitted, or end what it does not wait for.
TEST(Submitter, RunsOnlyWhatItHasSubmitted) {
  const auto part = [](FromSequencer what, uint32_t number) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.put(what);
    writer.put(number);
    return bytes;
  };
  const auto decide = [&](const NamedRequest& request) {
    Bytes bytes = part(FromSequencer::Decide, 0);
    ByteWriter writer(bytes);
    write(writer, Agreed{request, {}});
    return bytes;
  };
  Bytes run;
  ByteWriter runs(run);
  runs.put(FromSequencer::Run);
  SlotSet slots;
  slots.add(0);
  slots.write(runs);

  const NamedRequest request = all_reduce_of("grad", {2});
  const NamedRequest changed = all_reduce_of("grad", {3});
  Bytes message;
  std::vector<Decision> decisions;
  {
    Submitter submitter;
    EXPECT_FALSE(submitter.take(part(FromSequencer::JoinEnded, 0), decisions).ok());
    ASSERT_TRUE(submitter.submit(request, message).ok());
    EXPECT_FALSE(submitter.take(decide(changed), decisions).ok());
  }
  {
    Bytes refuse;
    ByteWriter writer(refuse);
    writer.put(FromSequencer::Refuse);
    writer.put(request.name);
    writer.put(StatusCode::Mismatch);
    writer.put("");
    Submitter submitter;
    ASSERT_TRUE(submitter.submit(request, message).ok());
    EXPECT_FALSE(submitter.take(refuse, decisions).ok()) << "it says no reason";
  }
  Submitter submitter;
  ASSERT_TRUE(submitter.submit(request, message).ok());
  ASSERT_TRUE(submitter.take(decide(request), decisions).ok());
  submitter.end(request.name);
  ASSERT_TRUE(submitter.submit(changed, message).ok());
  EXPECT_EQ(decisions.size(), 1U);
  EXPECT_FALSE(submitter.take(run, decisions).ok()) << "the bit stands for something else";
  EXPECT_EQ(decisions.size(), 1U);
}

}  // namespace
}  // namespace rdmacoll::sequencer_test
