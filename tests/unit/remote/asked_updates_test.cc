// Updates that the owner is asked for: what it makes, what it refuses whoever asks, and what who
// asks believes of its replies. Processes are threads here.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/remote/fields.h"
#include "csrc/remote/remote.h"
#include "csrc/remote/update_request.h"
#include "tests/unit/remote/processes.h"

namespace rdmacoll::asked_updates_test {
namespace {

constexpr uint64_t kBytes = 64;
constexpr int64_t kShortMs = 200;

bool has_updates(const OpenedPtr& opened) {
  return opened->session->link().transport->info().has_updates;
}

RemoteMemoryPtr expose_words(RemoteProcess& p, const std::string& name, uint64_t offset) {
  const auto memory = p.memory(4096, Others::Write);
  p.expose({.name = name, .bytes = kBytes, .is_writable = true}, memory, offset);
  return memory;
}

// Whatever the transport has.
Result<uint64_t> ask_for(RemoteProcess& p, const SessionPtr& session, const TaggedFields& what) {
  auto asked = std::make_shared<Request>();
  asked->work = std::make_shared<Work>();
  asked->text = encode(what);
  asked->deadline_ns = p.sessions().now_ns() + kSoonMs * 1'000'000;
  EXPECT_TRUE(p.sessions().submit(*session, asked).ok());
  const Status status = p.wait(asked->work);
  if (!status.ok()) return status;
  auto told = parse_tagged_fields(asked->reply);
  EXPECT_TRUE(told.ok());
  return number_of(told.value(), fields::kBefore).value();
}

TEST_P(RemoteTest, TheOwnerUpdatesWhatItIsAskedTo) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 8);
      p.meet();
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data() + 64), 4u);
      return;
    }
    const OpenedPtr words = p.open("words", 0);
    const auto ask = [&](const Update& update) {
      return ask_for(p, words->session,
                     fields_of(UpdateRequest{words->as.number, kBytes - 8, update}))
          .take();
    };
    EXPECT_EQ(ask(Update::add(~uint64_t{0})), 0u);
    EXPECT_EQ(ask(Update::add(2)), ~uint64_t{0});
    EXPECT_EQ(ask(Update::compare_swap(0, 9)), 1u);
    EXPECT_EQ(ask(Update::compare_swap(1, 4)), 1u);
    p.meet();
  });
}

TEST_P(RemoteTest, TheOwnerRefusesWhatIsNoWordOfTheAsker) {
  run(3, [](RemoteProcess& p) {
    static uint64_t number_of_another = 0;  // of the owner's peers, who meet in between
    if (p.rank() == 0) {
      const auto words = expose_words(p, "words", 8);
      const auto odd = expose_words(p, "odd", 12);
      const auto read_only = p.memory(4096, Others::Write);
      p.expose({.name = "for reading", .bytes = kBytes}, read_only, 0);
      p.remote().lend(4096);
      for (int i = 0; i < 3; ++i) p.meet();
      for (const auto& memory : {words, odd, read_only}) {
        EXPECT_TRUE(std::all_of(memory->data(), memory->data() + memory->bytes(),
                                [](std::byte one) { return one == std::byte{0}; }));
      }
      return;
    }
    const SessionPtr session = p.session_with(0);
    const auto refused = [&](const TaggedFields& what, StatusCode code) {
      const auto answered = ask_for(p, session, what);
      EXPECT_EQ(answered.status().code(), code) << answered.status().message();
    };
    const auto add = [](uint64_t number, uint64_t offset) {
      return fields_of(UpdateRequest{number, offset, Update::add(1)});
    };
    if (p.rank() == 2) {
      p.meet();
      refused(add(number_of_another, 0), StatusCode::Aborted);
      p.meet();
      return p.meet();
    }
    const OpenedPtr words = p.open("words", 0);
    const uint64_t number = number_of_another = words->as.number;
    p.meet();
    p.meet();
    for (const uint64_t offset :
         {kBytes, kBytes - 7, uint64_t{4}, uint64_t{1} << 40, ~uint64_t{7}, ~uint64_t{0}}) {
      refused(add(number, offset), StatusCode::InvalidArgument);
    }
    refused(add(p.open("odd", 0)->as.number, 8), StatusCode::InvalidArgument);
    refused(add(p.open("for reading", 0)->as.number, 0), StatusCode::InvalidArgument);
    refused(add(number + 1000, 0), StatusCode::Aborted);
    TaggedFields swap = fields_of(UpdateRequest{number, 0, Update::compare_swap(0, 1)});
    for (const char* name :
         {fields::kNumber, fields::kOffset, fields::kOperand, fields::kExpected}) {
      for (const char* value : {"", "-1", "0x1", "18446744073709551616"}) {
        const std::string right = std::exchange(swap[name], value);
        refused(swap, StatusCode::InvalidArgument);
        swap[name] = right;
      }
    }
    p.remote().close(words);
    refused(add(number, 0), StatusCode::Aborted);
    auto lent = p.remote().allocate_there(p.address(0), "rank 0", 64, kSoonMs, {});
    ASSERT_TRUE(lent.ok()) << lent.status().message();
    refused(add(lent.value()->as.number, 64), StatusCode::InvalidArgument);
    p.remote().close(lent.value());
    refused(add(lent.value()->as.number, 0), StatusCode::Aborted);
    p.meet();
  });
}

TEST_P(RemoteTest, TheOwnerUpdatesNothingThatItHasRevoked) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      p.meet();
      ASSERT_TRUE(p.remote().revoke("words", kSoonMs, {}).ok());
      p.meet();
      p.meet();
      EXPECT_EQ(memory->data()[0], std::byte{0});
      return;
    }
    const OpenedPtr words = p.open("words", 0);
    p.meet();
    p.meet();
    const auto what = fields_of(UpdateRequest{words->as.number, 0, Update::add(1)});
    EXPECT_EQ(ask_for(p, words->session, what).status().code(), StatusCode::Aborted);
    p.meet();
  });
}

// Answers as one would that is of another version, or means no good.
struct Answers final : Responder {
  explicit Answers(Result<std::string> with) : with(std::move(with)) {}
  Result<std::string> answer(const SessionPtr&, const std::string&) override { return with; }
  void note_end(const SessionPtr&) override {}
  const Result<std::string> with;
};

TEST_P(RemoteTest, AReplyToAnUpdateIsNotTrusted) {
  const std::vector<Result<std::string>> replies = {
      std::string(), std::string("7"), encode({{fields::kBefore, "-1"}}),
      encode({{fields::kOffset, "1"}}), Status(StatusCode::Aborted, "not any more")};
  run(2, [&](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      p.meet();
      for (const auto& reply : replies) {
        Answers answers(reply);
        p.sessions().answer_by(&answers);
        p.meet();
        p.meet();
        p.sessions().answer_by(&p.remote());
      }
      return p.meet();
    }
    const OpenedPtr words = p.open("words", 0);
    p.meet();
    for (const auto& reply : replies) {
      p.meet();
      const auto before = std::make_shared<uint64_t>(5);
      const Status status = p.wait(p.remote().update(words, 0, Update::add(1), before, kSoonMs));
      if (has_updates(words)) {
        EXPECT_TRUE(status.ok()) << status.message();
      } else {
        EXPECT_EQ(status.code(), reply.ok() ? StatusCode::PeerFailed : StatusCode::Aborted);
        EXPECT_NE(status.message().find(reply.ok() ? "rank 0 has answered what makes no sense"
                                                   : "rank 0 has taken 'words' back"),
                  std::string::npos)
            << status.message();
        EXPECT_EQ(*before, 5u);
      }
      p.meet();
    }
    p.meet();
  });
}

// It may be made all the same, later.
TEST_P(RemoteTest, AnUpdateThatNobodyAnswersEndsInTime) {
  run(2, [](RemoteProcess& p) {
    if (p.rank() == 0) {
      const auto memory = expose_words(p, "words", 0);
      p.meet();
      p.sessions().answer_by(nullptr);
      p.meet();
      p.meet();
      p.sessions().answer_by(&p.remote());
      p.meet();
      EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory->data()), 2u);
      return;
    }
    const OpenedPtr words = p.open("words", 0);
    p.meet();
    p.meet();
    const auto before = std::make_shared<uint64_t>(0);
    const auto late = p.remote().update(words, 0, Update::add(1), before, kShortMs);
    const Status status = p.wait(late);
    EXPECT_EQ(status.code(), has_updates(words) ? StatusCode::Ok : StatusCode::Timeout)
        << status.message();
    p.meet();
    p.good(p.remote().update(words, 0, Update::add(1), before, kSoonMs));
    EXPECT_EQ(*before, 1u);
    p.meet();
  });
}

}  // namespace
}  // namespace rdmacoll::asked_updates_test
