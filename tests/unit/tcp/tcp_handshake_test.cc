// The handshake of two processes, both sides in memory: who is met, and whom nothing helps.
#include <gtest/gtest.h>

#include <cstring>

#include "csrc/transport/tcp/connection/handshake.h"

namespace rdmacoll::tcp::tcp_handshake_test {
namespace {

using Next = Handshake::Next;

const ProcessId kDialler{1}, kAcceptor{2};
const Address kDiallers{kDialler, 17, "host", {}};

JobKey key_of(const std::string& secret) { return JobKey::load(secret).take(); }

// One connection. What either side says is written down.
struct Ends {
  explicit Ends(const std::string& dialler_secret = "secret",
                const std::string& acceptor_secret = "secret", uint8_t nonce = 0)
      : dialler_key(key_of(dialler_secret)),
        acceptor_key(key_of(acceptor_secret)),
        dialler(Handshake::dialling(kDiallers, kAcceptor, 0, 2, {3, nonce})),
        acceptor(Handshake::accepting(kAcceptor, 2, {4, nonce})) {}

  static Next hear(Handshake& side, const JobKey& key, const std::string& said) {
    EXPECT_EQ(side.wants_bytes(), said.size());
    if (side.wants_bytes() != said.size()) return Next::Failed;
    return side.hear(std::as_bytes(std::span(said.data(), said.size())), key);
  }
  Next acceptor_hears(const std::string& said) { return hear(acceptor, acceptor_key, said); }
  Next dialler_hears(const std::string& said) { return hear(dialler, dialler_key, said); }

  const JobKey dialler_key, acceptor_key;
  Handshake dialler, acceptor;
};

Answer answer_of(const std::string& bytes) {
  Answer answer;
  EXPECT_EQ(bytes.size(), sizeof(answer));
  std::memcpy(&answer, bytes.data(), std::min(bytes.size(), sizeof(answer)));
  return answer;
}
template <typename T>
std::string text(const T& value) {
  return std::string(bytes_to_sign(value));
}
bool says(const Handshake& side, const std::string& words) {
  return side.why().message().find(words) != std::string::npos;
}
bool equal(const SipKey& one, const SipKey& other) {
  return one.low == other.low && one.high == other.high;
}

FrameKeys keys_after_meeting(Ends& ends) {
  EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Reply);
  EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Reply);
  EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Met);
  EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Met);
  EXPECT_EQ(ends.dialler.take_reply(), "");
  EXPECT_TRUE(equal(ends.dialler.keys().out, ends.acceptor.keys().in));
  EXPECT_TRUE(equal(ends.dialler.keys().in, ends.acceptor.keys().out));
  return ends.dialler.keys();
}

TEST(TcpHandshake, TwoOfAJobMeetWithKeysOfTheirOwn) {
  Ends ends, later("secret", "secret", 1), others("other", "other");
  const FrameKeys keys = keys_after_meeting(ends);
  EXPECT_EQ(ends.acceptor.other(), kDialler);
  EXPECT_EQ(ends.dialler.other(), kAcceptor);
  EXPECT_FALSE(equal(keys.out, keys.in));
  EXPECT_FALSE(equal(keys.out, keys_after_meeting(later).out));
  EXPECT_FALSE(equal(keys.out, keys_after_meeting(others).out));
}

TEST(TcpHandshake, AJobWithoutASecretMeetsToo) {
  Ends ends("", "");
  keys_after_meeting(ends);
}

TEST(TcpHandshake, WithAnotherSecretOrNoneBothLearnThatTheyDiffer) {
  for (const auto& [one, other] :
       {std::pair("secret", "another"), {"secret", ""}, {"", "secret"}}) {
    Ends ends(one, other);
    ASSERT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Reply);
    EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Failed);
    EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Failed);
    EXPECT_EQ(answer_of(ends.acceptor.take_reply()).verdict, Verdict::NoProof);
    for (const Handshake* side : {&ends.dialler, &ends.acceptor}) {
      EXPECT_EQ(side->why().code(), StatusCode::Mismatch);
      EXPECT_TRUE(says(*side, "did not prove that it knows the secret")) << side->why().message();
      EXPECT_TRUE(says(*side, "RDMACOLL_SECRET_FILE"));
    }
  }
}

TEST(TcpHandshake, AnotherVersionIsNamedOnBothSides) {
  Ends ends;
  Greeting greeting;
  std::memcpy(&greeting, ends.dialler.take_reply().data(), sizeof(greeting));
  greeting.version = 7;
  EXPECT_EQ(ends.acceptor_hears(text(greeting)), Next::Failed);
  EXPECT_TRUE(says(ends.acceptor,
                   "it speaks version 7 of rdmacoll's tcp protocol, this process "
                   "version " +
                       std::to_string(kWireVersion) + "; install the same rdmacoll on all hosts"));
  Answer answer = answer_of(ends.acceptor.take_reply());
  EXPECT_EQ(answer.verdict, Verdict::OtherVersion);
  answer.version = 9;  // as the other one's would be
  EXPECT_EQ(ends.dialler_hears(text(answer)), Next::Failed);
  EXPECT_EQ(ends.dialler.why().code(), StatusCode::Mismatch);
  EXPECT_TRUE(says(ends.dialler, "version 9"));
  Ends old;
  answer.verdict = Verdict::GoOn;
  EXPECT_EQ(old.dialler_hears(text(answer)), Next::Failed);
  EXPECT_TRUE(says(old.dialler, "version 9"));
}

TEST(TcpHandshake, AnotherProcessSaysThatItIsAnother) {
  Ends ends;
  ends.acceptor = Handshake::accepting({9}, 2, {4});
  EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Failed);
  EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Failed);
  EXPECT_EQ(ends.dialler.why().code(), StatusCode::PeerFailed);
  EXPECT_TRUE(says(ends.dialler, "another process listens there"));
}

TEST(TcpHandshake, OtherStreamsAreNamedOnBothSides) {
  Ends ends;
  ends.acceptor = Handshake::accepting(kAcceptor, 3, {4});
  EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Failed);
  EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Failed);
  for (const Handshake* side : {&ends.dialler, &ends.acceptor}) {
    EXPECT_EQ(side->why().code(), StatusCode::Mismatch);
    EXPECT_TRUE(says(*side, "RDMACOLL_TCP_STREAMS"));
  }
}

TEST(TcpHandshake, AStreamThatThereIsNotIsRefused) {
  Ends ends;
  ends.dialler = Handshake::dialling(kDiallers, kAcceptor, 2, 2, {3});
  EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Failed);
}

TEST(TcpHandshake, WhatSpeaksAnotherProtocolIsNotAnswered) {
  Ends ends;
  std::string garbage(sizeof(Greeting), '\0');
  garbage.replace(0, 14, "GET / HTTP/1.1");
  EXPECT_EQ(ends.acceptor_hears(garbage), Next::Failed);
  EXPECT_EQ(ends.acceptor.take_reply(), "");
  EXPECT_EQ(ends.dialler_hears(garbage.substr(0, sizeof(Answer))), Next::Failed);
  EXPECT_EQ(ends.dialler.why().code(), StatusCode::PeerFailed);
  EXPECT_TRUE(says(ends.dialler, "is not rdmacoll"));
}

TEST(TcpHandshake, WhoeverSendsBackWhatItHearsProvesNothing) {
  Ends ends;
  ASSERT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Reply);
  const Answer answer = answer_of(ends.acceptor.take_reply());
  EXPECT_EQ(ends.acceptor_hears(text(answer.proof)), Next::Failed);
  // Nor does one that takes the acceptor's part with the dialler's own words.
  Ends mirrored;
  Answer echo;
  echo.nonce = {3};
  ASSERT_EQ(mirrored.dialler_hears(text(echo)), Next::Failed);
  const std::string proof = mirrored.dialler.take_reply();
  Ends again;
  std::memcpy(echo.proof.data(), proof.data(), proof.size());
  EXPECT_EQ(again.dialler_hears(text(echo)), Next::Failed);
}

TEST(TcpHandshake, WhatWasSaidOnAnotherConnectionProvesNothing) {
  Ends earlier, later;
  later.acceptor = Handshake::accepting(kAcceptor, 2, {5});  // it draws another nonce
  const std::string greeting = earlier.dialler.take_reply();
  ASSERT_EQ(earlier.acceptor_hears(greeting), Next::Reply);
  const std::string answer = earlier.acceptor.take_reply();
  ASSERT_EQ(earlier.dialler_hears(answer), Next::Reply);
  const std::string proof = earlier.dialler.take_reply();
  ASSERT_EQ(later.acceptor_hears(greeting), Next::Reply);
  EXPECT_EQ(later.acceptor_hears(proof), Next::Failed);
  // An answer of before, to a dialler that draws another nonce.
  Ends another("secret", "secret", 1);
  EXPECT_EQ(another.dialler_hears(answer), Next::Failed);
}

TEST(TcpHandshake, EveryByteOfAGreetingAnAnswerAndAProofCounts) {
  const std::string greeting = Ends().dialler.take_reply();
  for (size_t at = 0; at < greeting.size(); ++at) {
    Ends ends;
    std::string said = greeting;
    said[at] = static_cast<char>(said[at] ^ 1);
    if (ends.acceptor_hears(said) != Next::Reply) continue;
    EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Failed) << at;
    EXPECT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Failed) << at;
  }
  for (size_t at = 0; at < sizeof(Mac); ++at) {
    Ends ends;
    ASSERT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Reply);
    Answer answer = answer_of(ends.acceptor.take_reply());
    Ends fooled;
    answer.proof[at] ^= 1;
    EXPECT_EQ(fooled.dialler_hears(text(answer)), Next::Failed) << at;
    answer.proof[at] ^= 1;
    ASSERT_EQ(ends.dialler_hears(text(answer)), Next::Reply);
    std::string proof = ends.dialler.take_reply();
    proof[at] = static_cast<char>(proof[at] ^ 1);
    EXPECT_EQ(ends.acceptor_hears(proof), Next::Failed) << at;
  }
}

TEST(TcpHandshake, TwoAcceptorsOrTwoDiallersDoNotMeet) {
  Ends ends;
  Handshake other = Handshake::dialling({kAcceptor, 18, "other", {}}, kDialler, 0, 2, {4});
  EXPECT_EQ(ends.dialler_hears(other.take_reply().substr(0, sizeof(Answer))), Next::Failed);
}

TEST(TcpHandshake, RefusalsSayWhy) {
  const std::pair<Verdict, const char*> verdicts[] = {
      {Verdict::KnownAlready, "has met this process before"},
      {Verdict::Busy, "dials this process itself"},
      {Verdict::NoProof, "did not prove"},
      {static_cast<Verdict>(99), ""},
      {Verdict::GoOn, "breaks rdmacoll's protocol"},
  };
  for (const auto& [verdict, words] : verdicts) {
    Ends ends;
    ASSERT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Reply);
    ASSERT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Reply);
    ASSERT_EQ(ends.acceptor_hears(ends.dialler.take_reply()), Next::Met);
    ends.acceptor.refuse(verdict);
    EXPECT_EQ(ends.dialler_hears(ends.acceptor.take_reply()), Next::Failed);
    EXPECT_TRUE(says(ends.dialler, words)) << ends.dialler.why().message();
  }
}

TEST(TcpHandshake, NobodyIsWelcomedBeforeAProof) {
  Ends ends;
  Answer welcome;
  welcome.verdict = Verdict::Welcome;
  welcome.nonce = {4};
  EXPECT_EQ(ends.dialler_hears(text(welcome)), Next::Failed);
}

}  // namespace
}  // namespace rdmacoll::tcp::tcp_handshake_test
