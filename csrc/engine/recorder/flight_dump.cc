// The flight recorder as JSON. Floor: engine/recorder. Thread: any.
#include "csrc/engine/recorder/flight_dump.h"

#include <unistd.h>

#include <cstdio>

#include "csrc/base/clock.h"
#include "csrc/base/host_name.h"
#include "csrc/base/private_file.h"
#include "csrc/reduce/types.h"

namespace rdmacoll {
namespace {

// A JSON object under construction. Texts are escaped; what is not ASCII is taken to be UTF-8.
class Object {
 public:
  Object& number(const char* key, int64_t value) { return raw(key, std::to_string(value)); }
  Object& text(const char* key, const std::string& value) { return raw(key, quoted(value)); }
  Object& raw(const char* key, const std::string& json) {
    text_ += (text_.empty() ? "{\"" : ", \"") + std::string(key) + "\": " + json;
    return *this;
  }
  std::string str() const { return text_ + "}"; }

 private:
  static std::string quoted(const std::string& value) {
    std::string out = "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') out += '\\';
      if (static_cast<unsigned char>(c) >= 0x20) {
        out += c;
      } else {
        char code[8];
        std::snprintf(code, sizeof(code), "\\u%04x", c);
        out += code;
      }
    }
    return out + '"';
  }
  std::string text_;
};

template <typename Items, typename ToJson>
std::string list(const Items& items, const char* separator, ToJson&& to_json) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : separator) + to_json(item);
  return "[" + text + "]";
}

bool is_collective(const FlightRecord& record) { return record.kind < kCollectives; }

// Apart from all that groups do, also for a reader that knows fewer kinds.
std::string kind_of(FlightKind kind) { return std::string("remote_") + flight_kind_name(kind); }

std::string kind_of(const FlightRecord& record) {
  if (is_remote(record.kind)) return kind_of(static_cast<FlightKind>(record.kind));
  if (is_collective(record)) return collective_name(static_cast<Collective>(record.kind));
  return record.kind == kFlightSend ? "send" : "recv";
}

const char* state_of(FlightState state) {
  switch (state) {
    case FlightState::Queued:
      return "queued";
    case FlightState::Running:
      return "running";
    case FlightState::Done:
      return "done";
    case FlightState::Failed:
      return "failed";
  }
  return "unknown";
}

std::string to_json(const FlightRecord& record) {
  Object object;
  object.number("group", record.group)
      .number("sequence", static_cast<int64_t>(record.sequence))
      .text("operation", kind_of(record))
      .text("state", state_of(record.state))
      .number("bytes", static_cast<int64_t>(record.bytes));
  if (is_collective(record)) {
    object.number("root", record.peer)
        .text("algorithm", algorithm_name(static_cast<Algorithm>(record.algorithm)));
    if (folds(static_cast<Collective>(record.kind))) {
      object.text("dtype", dtype_name(static_cast<DType>(record.dtype)))
          .text("op", reduce_op_name(static_cast<ReduceOp>(record.op)));
    }
  } else if (!is_remote(record.kind)) {
    object.number("peer", record.peer).number("tag", record.tag);
  }
  return object.number("queued_ns", record.queued_ns)
      .number("started_ns", record.started_ns)
      .number("ended_ns", record.ended_ns)
      .str();
}

std::string to_json(const FlightGroup& group) {
  std::vector<uint64_t> ranks = group.name.ranks;
  for (int rank = 0; group.name.ranks.empty() && rank < group.size; ++rank) {
    ranks.push_back(static_cast<uint64_t>(rank));
  }
  return Object()
      .number("id", group.id)
      .text("name", group.name.name)
      .number("rank", group.rank)
      .raw("ranks", list(ranks, ", ", [](uint64_t rank) { return std::to_string(rank); }))
      .text("reach", group.reach)
      .text("failure", group.failure)
      .raw("left", group.left ? "true" : "false")
      .str();
}

std::string to_json(const FlightSession& session) {
  return Object()
      .number("id", session.id)
      .text("with", session.with)
      .text("reach", session.reach)
      .text("failure", session.failure)
      .raw("ended", session.has_ended ? "true" : "false")
      .str();
}

std::string to_json(const FlightWait& wait) {
  return Object()
      .number("group", 0)
      .number("sequence", 0)
      .text("operation", kind_of(wait.kind))
      .text("state", state_of(FlightState::Running))
      .number("bytes", 0)
      .text("with", wait.with)
      .number("queued_ns", wait.since_ns)
      .number("started_ns", wait.since_ns)
      .number("ended_ns", 0)
      .str();
}

std::string lines(const std::vector<std::string>& entries) {
  return list(entries, ",\n  ", [](const std::string& entry) { return entry; });
}

std::string in_flight_json(const FlightSnapshot& snapshot) {
  std::vector<std::string> entries;
  for (const FlightRecord& record : snapshot.records) {
    if (record.ended_ns == 0) entries.push_back(to_json(record));
  }
  for (const FlightWait& wait : snapshot.waits) entries.push_back(to_json(wait));
  return lines(entries);
}

std::string ended_json(const FlightSnapshot& snapshot) {
  std::vector<std::string> entries;
  for (const FlightRecord& record : snapshot.records) {
    if (record.ended_ns != 0) entries.push_back(to_json(record));
  }
  return lines(entries);
}

}  // namespace

std::string flight_dump(const FlightRecorder& recorder, const std::string& reason) {
  const FlightSnapshot snapshot = recorder.snapshot();
  const SteadyClock clock;
  const int64_t now_ns = clock.now_ns();
  return Object()
             .text("format", "rdmacoll flight recorder 1")
             .text("reason", reason)
             .number("pid", ::getpid())
             .number("rank", recorder.rank())
             .text("host", host_name())
             .number("clock_ns", now_ns)
             .number("wall_ns", now_ns + clock.to_time_of_day_ns())
             .number("left_out", static_cast<int64_t>(snapshot.left_out))
             .raw("groups", list(snapshot.groups, ",\n  ",
                                 [](const FlightGroup& group) { return to_json(group); }))
             .raw("sessions", list(snapshot.sessions, ",\n  ",
                                   [](const FlightSession& session) { return to_json(session); }))
             .raw("in_flight", in_flight_json(snapshot))
             .raw("ended", ended_json(snapshot))
             .str() +
         "\n";
}

Result<std::string> write_flight_dump(const FlightRecorder& recorder, const std::string& reason,
                                      const std::string& suffix) {
  const std::string who = recorder.rank() < 0 ? "" : "rank" + std::to_string(recorder.rank()) + "-";
  const std::string name =
      "rdmacoll-" + who + "pid" + std::to_string(::getpid()) + suffix + ".json";
  RDMACOLL_RETURN_IF_ERROR(
      write_private_file(recorder.dump_dir(), name, flight_dump(recorder, reason)));
  return recorder.dump_dir() + "/" + name;
}

}  // namespace rdmacoll
