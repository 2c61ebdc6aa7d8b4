// shm: how a process proves that it knows the job's secret, and what is no proof.
#include <gtest/gtest.h>

#include "csrc/transport/shm/handshake.h"

namespace rdmacoll::shm_handshake_test {
namespace {

using Next = Handshake::Next;

const ProcessId kDialler{1}, kListener{2};

// The two ends of one socket, as each sees the other.
struct Ends {
  Ends(uint8_t dialler_nonce, uint8_t listener_nonce)
      : at_dialler(PeerSocket(SoleFd()), ProcessId{dialler_nonce}),
        at_listener(PeerSocket(SoleFd()), ProcessId{listener_nonce}) {
    at_dialler.dialled = true;
    at_dialler.process = kListener;
    EXPECT_EQ(at_dialler.hear(at_listener.challenge(kListener), key, kDialler), Next::Prove);
    EXPECT_EQ(at_listener.hear(at_dialler.challenge(kDialler), key, kListener), Next::Prove);
  }
  Message diallers_proof() const { return at_dialler.proof(key, kDialler).take(); }
  Message listeners_proof() const { return at_listener.proof(key, kListener).take(); }

  const JobKey key = JobKey::load("the secret of the job").take();
  Handshake at_dialler;
  Handshake at_listener;
};

Message hello(const ProcessId& from) {
  Message message;
  message.kind = MessageKind::Hello;
  message.sender = from;
  return message;
}

TEST(ShmStranger, ProofsThenHellosThenPeers) {
  Ends ends(3, 4);
  EXPECT_EQ(ends.at_listener.hear(ends.diallers_proof(), ends.key, kListener), Next::SayHello);
  EXPECT_EQ(ends.at_dialler.hear(ends.listeners_proof(), ends.key, kDialler), Next::SayHello);
  EXPECT_EQ(ends.at_listener.hear(hello(kDialler), ends.key, kListener), Next::Admit);
  EXPECT_EQ(ends.at_dialler.hear(hello(kListener), ends.key, kDialler), Next::Admit);
}

TEST(ShmStranger, AProofOfAnotherConnectionIsNone) {
  Ends earlier(3, 4), later(3, 5);  // even if the dialler says its nonce again
  EXPECT_EQ(later.at_listener.hear(earlier.diallers_proof(), later.key, kListener), Next::Refuse);
}

TEST(ShmStranger, WhoeverSendsBackWhatItHearsProvesNothing) {
  Ends ends(3, 4);
  Message echo = ends.listeners_proof();
  echo.sender = kDialler;
  EXPECT_EQ(ends.at_listener.hear(echo, ends.key, kListener), Next::Refuse);
  // With its own name and nonce, too.
  Handshake mirror(PeerSocket(SoleFd()), ProcessId{4});
  EXPECT_EQ(mirror.hear(mirror.challenge(kListener), ends.key, kListener), Next::Prove);
  EXPECT_EQ(mirror.hear(mirror.proof(ends.key, kListener).take(), ends.key, kListener),
            Next::Refuse);
}

TEST(ShmStranger, EveryByteOfAProofCounts) {
  for (size_t at = 0; at < sizeof(Mac); ++at) {
    Ends ends(3, 4);
    Message proof = ends.diallers_proof();
    proof.proof[at] ^= 1;
    EXPECT_EQ(ends.at_listener.hear(proof, ends.key, kListener), Next::Refuse);
  }
}

TEST(ShmStranger, WhatComesOutOfTurnOrFromAnotherIsDropped) {
  const Message proof = Ends(3, 4).diallers_proof();
  for (const Message& wrong : {hello(kDialler), hello(kListener)}) {
    Ends ends(3, 4);
    EXPECT_EQ(ends.at_listener.hear(wrong, ends.key, kListener), Next::Drop);
  }
  Ends again(3, 4);
  EXPECT_EQ(again.at_listener.hear(again.at_dialler.challenge(kDialler), again.key, kListener),
            Next::Drop);
  Handshake unchallenged(PeerSocket(SoleFd()), ProcessId{4});
  EXPECT_EQ(unchallenged.hear(proof, again.key, kListener), Next::Drop);
  Handshake dialled(PeerSocket(SoleFd()), ProcessId{4});
  dialled.dialled = true;
  dialled.process = kListener;
  EXPECT_EQ(dialled.hear(again.at_dialler.challenge(kDialler), again.key, kDialler), Next::Drop);
}

}  // namespace
}  // namespace rdmacoll::shm_handshake_test
