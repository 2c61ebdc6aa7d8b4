// The messages about operations by name, of which one side lies: whatever a rank says, what the
// sequencer decides is taken by the others; whatever the sequencer says, a rank runs only what it
// has submitted, and in the sizes that it has.
#include <cstring>
#include <map>

#include "csrc/order/sequencer.h"
#include "csrc/order/submitter.h"
#include "tests/fuzz/target.h"

namespace rdmacoll::fuzz {
namespace {

// What happens, and so many bytes that a liar says, behind it.
struct Step {
  enum Kind : uint8_t { kLie, kSubmit, kJoin, kEnd, kAsk, kKinds };
  uint8_t kind = 0;
  uint8_t which = 0;
  uint16_t bytes = 0;
};

std::vector<NamedRequest> honest_requests() {
  NamedRequest reduce{.name = "a", .op = NamedOp::Sum};
  reduce.tensors = {{"Float", {2}}};
  NamedRequest gather{.name = "b", .kind = NamedKind::AllGather};
  gather.tensors = {{"Long", {3, 4}}};
  NamedRequest exchange{.name = "c", .kind = NamedKind::AllToAll, .is_kept = false};
  exchange.tensors = {{"Int", {3}}};
  exchange.splits = {1, 2};
  NamedRequest changed = reduce;
  changed.tensors[0].dims = {7};
  return {reduce, gather, exchange, changed, {.name = "d", .kind = NamedKind::Barrier}};
}
const std::vector<NamedRequest> kRequests = honest_requests();

// A rank that does not lie, and what it has in flight.
class Rank {
 public:
  // What it says.
  Bytes take(const Step& step) {
    Bytes message;
    if (step.kind == Step::kSubmit) {
      const NamedRequest& request = kRequests[step.which % kRequests.size()];
      const bool may = !has_joined_ && !in_flight_.contains(request.name);
      RDMACOLL_CHECK(submitter_.submit(request, message).ok() == may);
      if (may) in_flight_.emplace(request.name, InFlight{request});
    } else if (step.kind == Step::kJoin) {
      RDMACOLL_CHECK(submitter_.join(message).ok() == !has_joined_);
      has_joined_ = true;
    } else if (step.kind == Step::kAsk) {
      Submitter::ask(message);
    } else if (step.kind == Step::kEnd) {
      std::erase_if(in_flight_, [this](const auto& one) {
        if (one.second.is_decided) submitter_.end(one.first);
        return one.second.is_decided;
      });
    }
    return message;
  }

  Status hear(std::span<const std::byte> message) {
    std::vector<Decision> decisions;
    const Status heard = submitter_.take(message, decisions);
    for (const Decision& decision : decisions) check(decision);
    return heard;
  }

 private:
  struct InFlight {
    NamedRequest request;
    bool is_decided = false;
  };

  void check(const Decision& decision) {
    if (decision.what == Decision::What::JoinEnded) {
      RDMACOLL_CHECK(has_joined_);
      has_joined_ = false;
      return;
    }
    if (decision.what == Decision::What::Late) {
      RDMACOLL_CHECK(decision.late.names.size() <= kLateNamesMax);
      for (const Unsubmitted& one : decision.late.names) {
        RDMACOLL_CHECK(printable(one.name) == one.name);
      }
      return;
    }
    RDMACOLL_CHECK(decision.is_own || has_joined_);
    if (decision.what == Decision::What::Refused) check_error(decision.why);
    const bool runs = decision.what == Decision::What::Run;
    RDMACOLL_CHECK((decision.agreed != nullptr) == runs);
    if (!decision.is_own) return;
    InFlight& own = in_flight_.at(decision.name);
    RDMACOLL_CHECK(!own.is_decided);
    own.is_decided = true;
    if (runs) RDMACOLL_CHECK(agrees(own.request, decision.agreed->request));
  }

  Submitter submitter_;
  std::map<std::string, InFlight> in_flight_;
  bool has_joined_ = false;
};

// Rank 1 lies.
class LyingRank {
 public:
  bool take(const Step& step, std::span<const std::byte> lie) {
    const Bytes honest = rank_.take(step);
    RDMACOLL_CHECK(sequencer_.take(0, honest).ok());
    const Status taken = sequencer_.take(1, lie);
    RDMACOLL_CHECK(rank_.hear(sequencer_.decisions()).ok());
    if (!taken.ok()) check_error(taken);
    return taken.ok();
  }

 private:
  Sequencer sequencer_{2};
  Rank rank_;
};

class LyingSequencer {
 public:
  bool take(const Step& step, std::span<const std::byte> lie) {
    static_cast<void>(rank_.take(step));
    const Status heard = rank_.hear(lie);
    if (!heard.ok()) check_error(heard);
    return heard.ok();
  }

 private:
  Rank rank_;
};

template <typename Liar>
void play(Liar liar, const std::string& bytes) {
  for (size_t at = 1; at + sizeof(Step) <= bytes.size();) {
    Step step;
    std::memcpy(&step, bytes.data() + at, sizeof(step));
    at += sizeof(step);
    step.kind %= Step::kKinds;
    const size_t count =
        step.kind == Step::kLie ? std::min<size_t>(step.bytes, bytes.size() - at) : 0;
    if (!liar.take(step, std::as_bytes(std::span(bytes.data() + at, count)))) return;
    at += count;
  }
}

std::string lie(const Bytes& message) {
  return bytes_of(Step{Step::kLie, 0, static_cast<uint16_t>(message.size())}) +
         std::string(reinterpret_cast<const char*>(message.data()), message.size());
}

// Two rounds of all requests and a join of both ranks: as rank 1, and as the sequencer is heard.
std::vector<std::string> honest_conversation() {
  std::string of_rank(1, '\0'), of_sequencer(1, '\1');
  Sequencer sequencer(2);
  Rank ranks[2];
  const auto say = [&](const Step& step) {
    of_rank += bytes_of(step);
    of_sequencer += bytes_of(step);
    Bytes own = ranks[0].take(step);
    RDMACOLL_CHECK(sequencer.take(0, own).ok());
    Bytes said = ranks[1].take(step);
    RDMACOLL_CHECK(sequencer.take(1, said).ok());
    const Bytes decisions = sequencer.decisions();
    for (Rank& rank : ranks) RDMACOLL_CHECK(rank.hear(decisions).ok());
    of_rank += lie(said);
    of_sequencer += lie(decisions);
  };
  for (int round = 0; round < 2; ++round) {
    for (uint8_t i = 0; i < kRequests.size(); ++i) {
      say({Step::kSubmit, i, 0});
      say({Step::kAsk, 0, 0});
      say({Step::kEnd, 0, 0});
    }
    say({Step::kJoin, 0, 0});
  }
  return {of_rank, of_sequencer};
}

// What the others do not agree with is refused.
std::string disagreement() {
  std::string all(1, '\0');
  Submitter submitter;
  for (uint8_t i = 0; i < kRequests.size(); ++i) {
    NamedRequest other = kRequests[i];
    other.op = NamedOp::Max;
    Bytes message;
    if (!submitter.submit(other, message).ok()) continue;
    all += bytes_of(Step{Step::kSubmit, i, 0}) + lie(message) + bytes_of(Step{Step::kEnd});
  }
  return all;
}

// A sequencer that answers what has changed by a bit, and one that refuses in words that a terminal
// would obey.
std::vector<std::string> lies_of_sequencer() {
  Bytes decide, run, refuse;
  ByteWriter decides(decide), runs(run), refuses(refuse);
  decides.put(FromSequencer::Decide);
  decides.put(uint32_t{0});
  write(decides, Agreed{kRequests[0], {}});
  SlotSet slots;
  slots.add(0);
  runs.put(FromSequencer::Run);
  slots.write(runs);
  refuses.put(FromSequencer::Refuse);
  refuses.put(kRequests[0].name);
  refuses.put(StatusCode::Mismatch);
  refuses.put("\x1b[2J");
  const std::string first = std::string(1, '\1') + bytes_of(Step{Step::kSubmit, 0, 0});
  const std::string again =
      first + lie(decide) + bytes_of(Step{Step::kEnd}) + bytes_of(Step{Step::kSubmit, 3, 0});
  return {again + lie(run), first + lie(refuse)};
}

}  // namespace

std::vector<std::string> seeds() {
  std::vector<std::string> all = honest_conversation();
  all.push_back(disagreement());
  for (const std::string& lies : lies_of_sequencer()) all.push_back(lies);
  return all;
}

void run(const std::string& bytes) {
  if (bytes.empty()) return;
  if (bytes[0] % 2 == 0) return play(LyingRank(), bytes);
  play(LyingSequencer(), bytes);
}

}  // namespace rdmacoll::fuzz
