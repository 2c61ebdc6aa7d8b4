// Remote: updates of words, of others and for others. Where the transport makes none, the owner is
// asked for them: its CPU makes all updates of its memory then, and those exclude each other.
// Floor: remote. Thread: any.
#include <optional>
#include <utility>

#include "csrc/engine/session/update_word.h"
#include "csrc/remote/fields.h"
#include "csrc/remote/refusals.h"
#include "csrc/remote/remote.h"
#include "csrc/remote/update_request.h"

namespace rdmacoll {
namespace {

// An update that the owner is asked for (Transfer::then); it moves nothing itself.
class AskedUpdate final : public Transfer {
 public:
  explicit AskedUpdate(RequestPtr request) { then = std::move(request); }

  State advance(const Way&) override { return State::Ended; }
  bool is_under_way() const override { return false; }
  What what() const override { return {FlightKind::Update, kWordBytes}; }
};

Status check_word(const Opened& opened, uint64_t offset) {
  if (!holds(opened, offset, kWordBytes)) return out_of_range(opened, offset, kWordBytes);
  if ((opened.as.offset + offset) % kWordBytes == 0) return Status();
  return Status(StatusCode::InvalidArgument,
                "byte " + std::to_string(offset) + " of '" + opened.info.name +
                    "' is not aligned to eight bytes in its owner's memory, as what is updated "
                    "must be; expose a tensor that begins there on a multiple of eight");
}

// Where it lies; nullptr: there is no word that others may write.
std::byte* word_of(const Exposure& exposure, uint64_t offset) {
  const uint64_t bytes = exposure.info.bytes;
  const bool is_inside = offset <= bytes && kWordBytes <= bytes - offset;
  const uint64_t in_memory = exposure.offset + offset;
  if (!exposure.info.is_writable || !is_inside || in_memory % kWordBytes != 0) return nullptr;
  return exposure.memory->data() + in_memory;
}

// Of what it was before, from the owner's reply.
Status take_before(const Opened& opened, const std::string& reply, uint64_t& before) {
  auto told = parse_tagged_fields(reply);
  const auto number = told.ok() ? number_of(told.value(), fields::kBefore) : std::nullopt;
  if (!number) return bad_reply(opened.who);
  before = *number;
  return opened.failure();
}

}  // namespace

WorkPtr Remote::update(const OpenedPtr& opened, uint64_t offset, const Update& update,
                       std::shared_ptr<uint64_t> before, int64_t timeout_ms) {
  if (const Status bad = check_writable(*opened); !bad.ok()) return ended(bad);
  if (const Status bad = check_word(*opened, offset); !bad.ok()) return ended(bad);
  const auto use = opened->use();
  if (use == nullptr || !opened->session->failure().ok()) return ended(opened->why_not());
  if (opened->session->link().transport->info().has_updates) {
    const RemoteSlice word{use->memory->region.id, opened->as.offset + offset, kWordBytes};
    return submit(opened, use, std::make_unique<UpdateWord>(word, update, std::move(before)),
                  timeout_ms);
  }
  const RequestPtr asks =
      request(fields_of(UpdateRequest{opened->as.number, offset, update}), timeout_ms);
  // It is used until the owner has answered: who revokes it waits for that.
  asks->verdict = [opened, use, before = std::move(before)](const Status& answered,
                                                            const std::string& reply) {
    if (answered.code() == StatusCode::Aborted) return opened->why_not();
    if (!answered.ok()) return answered;
    return take_before(*opened, reply, *before);
  };
  return submit(opened, use, std::make_unique<AskedUpdate>(asks), timeout_ms);
}

// Under the lock: once something is revoked, no word of it is updated any more.
Result<std::string> Remote::answer_update(const SessionPtr& session, const TaggedFields& asked) {
  const auto wanted = update_request_of(asked);
  if (!wanted) {
    return Status(StatusCode::InvalidArgument, "a request for an update has numbers");
  }
  const GrantPtr lent = lent_.find(session, wanted->number);
  const std::lock_guard lock(mutex_);
  const Exposure* there = lent != nullptr ? lent->exposure.get() : nullptr;
  for (auto it = exposures_.begin(); there == nullptr && it != exposures_.end(); ++it) {
    if (it->second->is_open(session, wanted->number)) there = it->second.get();
  }
  if (there == nullptr) {
    return Status(StatusCode::Aborted, "its process has nothing open under this number");
  }
  std::byte* const word = word_of(*there, wanted->offset);
  if (word == nullptr) {
    return Status(StatusCode::InvalidArgument, "byte " + std::to_string(wanted->offset) + " of '" +
                                                   there->info.name +
                                                   "' begins no word that its process may update");
  }
  return encode({{fields::kBefore, std::to_string(wanted->update.apply_to(word))}});
}

}  // namespace rdmacoll
