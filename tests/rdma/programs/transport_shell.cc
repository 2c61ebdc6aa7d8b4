// One process with a verbs transport, driven by lines on its standard input, so that a test in
// another language can be its peer, its operating system, and its end. Between the lines it does
// what a waiting engine does: poll, arm, sleep.
//
// The device comes from the environment (RDMACOLL_HCA and others). A line is a command and its
// arguments, bytes are hexadecimal; each is answered by one line, "ok <result>" or "<status code>
// <message>". The first line comes unasked: the address, or why there is no transport.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "csrc/transport/verbs/open_verbs.h"

namespace rdmacoll {
namespace {

// As the engine's: it polls so often between two looks at the clock, and sleeps no longer than
// this.
constexpr int kPollsPerLook = 32;
constexpr int kSleepMostMs = 50;

std::string hex_of(const void* data, size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<const unsigned char*>(data)[i];
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

std::string hex_of(const std::string& bytes) { return hex_of(bytes.data(), bytes.size()); }

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

using Arguments = std::istringstream;

template <typename T>
T next(Arguments& arguments) {
  T value{};
  if (arguments >> value) return value;
  std::fprintf(stderr, "'%s' lacks an argument\n", arguments.str().c_str());
  std::exit(2);
}

class Shell {
 public:
  Shell(std::unique_ptr<Transport> transport, const Clock& clock)
      : transport_(std::move(transport)), clock_(clock) {}

  // Until the other end of the input is closed.
  void run() {
    say(hex_of(transport_->info().address));
    for (std::string line; next_line(&line);) say(answer(line));
  }

  static void say(Result<std::string> answer) {
    if (answer.ok()) {
      std::printf("ok %s\n", answer.value().c_str());
    } else {
      std::printf("%s %s\n", status_code_name(answer.status().code()),
                  answer.status().message().c_str());
    }
    std::fflush(stdout);
  }

 private:
  static Result<std::string> text_of(Status status) {
    if (!status.ok()) return status;
    return std::string();
  }

  bool next_line(std::string* line) {
    while (sleep(STDIN_FILENO) == 0) poll();
    return static_cast<bool>(std::getline(std::cin, *line));
  }

  void poll() {
    for (int i = 0; i < kPollsPerLook; ++i) transport_->poll();
  }

  // Until something comes from a peer, or from the other descriptor: then not 0. Not for long.
  int sleep(int other) {
    pollfd waited[] = {{transport_->arm(), POLLIN, 0}, {other, POLLIN, 0}};
    transport_->poll();
    ::poll(waited, 2, kSleepMostMs);
    transport_->disarm();
    return waited[1].revents;
  }

  Status wait(PeerId peer, const std::function<bool()>& over, int64_t limit_ms) {
    const Deadline deadline = Deadline::after_ms(clock_, limit_ms);
    while (true) {
      poll();
      if (over()) return Status();
      RDMACOLL_RETURN_IF_ERROR(transport_->peer_status(peer));
      if (deadline.passed(clock_)) return Status(StatusCode::Timeout, "the test's own limit");
      sleep(-1);
    }
  }

  Result<std::string> answer(const std::string& line) {
    Arguments arguments(line);
    const auto command = next<std::string>(arguments);
    const auto found = commands_.find(command);
    if (found != commands_.end()) return (this->*found->second)(arguments);
    return Status(StatusCode::InvalidArgument, "there is no command '" + command + "'");
  }

  // --- memory: of a region, an offset, and bytes -----------------------------------------------
  std::byte* at(RegionId region, uint64_t offset) { return memory_.at(region)->data() + offset; }

  Result<std::string> make(Arguments& arguments) {  // region, bytes, 1: for gets alone; its key
    const auto region = next<RegionId>(arguments);
    const auto bytes = next<uint64_t>(arguments);
    const bool for_gets = next<int>(arguments) == 1;
    auto memory = SharedSegment::create(bytes, for_gets ? Others::OnlyRead : Others::Write);
    if (!memory.ok()) return memory.status();
    memory_[region] = std::make_shared<SharedSegment>(memory.take());
    const Access access = for_gets ? Access::ReadOnly : Access::Full;
    auto key = transport_->register_region(region, RegionMemory::all_of(memory_[region], access));
    if (!key.ok()) return key.status();
    return hex_of(key.value());
  }
  Result<std::string> store(Arguments& arguments) {  // region, offset, data
    const auto region = next<RegionId>(arguments);
    const auto offset = next<uint64_t>(arguments);
    const std::string data = bytes_of(next<std::string>(arguments));
    std::memcpy(at(region, offset), data.data(), data.size());
    return std::string();
  }
  Result<std::string> show(Arguments& arguments) {  // region, offset, bytes
    const auto region = next<RegionId>(arguments);
    const auto offset = next<uint64_t>(arguments);
    return hex_of(at(region, offset), next<uint64_t>(arguments));
  }
  Result<std::string> release(Arguments& arguments) {  // region
    transport_->release_region(next<RegionId>(arguments), Release::Keep);
    return std::string();
  }

  // --- peers -------------------------------------------------------------------------------------
  Result<std::string> connect(Arguments& arguments) {  // address, limit: the peer
    const std::string address = bytes_of(next<std::string>(arguments));
    auto peer = transport_->connect(address, Deadline::after_ms(clock_, next<int64_t>(arguments)));
    if (!peer.ok()) return peer.status();
    return std::to_string(peer.value());
  }
  Result<std::string> offer(Arguments& arguments) {  // peer, region
    const auto peer = next<PeerId>(arguments);
    return text_of(transport_->offer_region(peer, next<RegionId>(arguments), kNoNote));
  }
  Result<std::string> open(Arguments& arguments) {  // peer, key
    const auto peer = next<PeerId>(arguments);
    const std::string key = bytes_of(next<std::string>(arguments));
    return text_of(transport_->open_region(peer, key, Deadline::after_ms(clock_, 0)).status());
  }
  Result<std::string> close(Arguments& arguments) {  // peer, region
    const auto peer = next<PeerId>(arguments);
    transport_->close_region(peer, next<RegionId>(arguments));
    return std::string();
  }
  Result<std::string> status(Arguments& arguments) {  // peer
    return text_of(transport_->peer_status(next<PeerId>(arguments)));
  }

  // --- data --------------------------------------------------------------------------------------
  // peer, region and offset here, region and offset there, bytes, how often, limit
  Result<std::string> move(Arguments& arguments, bool is_get) {
    const auto peer = next<PeerId>(arguments);
    const auto mine = next<RegionId>(arguments);
    std::byte* const data = at(mine, next<uint64_t>(arguments));
    const auto theirs = next<RegionId>(arguments);
    const auto offset = next<uint64_t>(arguments);
    const auto bytes = next<uint64_t>(arguments);
    auto left = next<int64_t>(arguments);
    const LocalSlice here{data, bytes, mine};
    const RemoteSlice there{theirs, offset, bytes};
    Ticket ticket;
    const auto all_done = [&] {
      for (; left > 0 && transport_->peer_status(peer).ok(); --left) {
        const Posted posted = is_get ? transport_->get(peer, 0, there, here, &ticket)
                                     : transport_->put(peer, 0, here, there, &ticket);
        if (posted == Posted::Full) return false;
      }
      return left == 0 && ticket.done() && transport_->peer_status(peer).ok();
    };
    return text_of(wait(peer, all_done, next<int64_t>(arguments)));
  }
  Result<std::string> put(Arguments& arguments) { return move(arguments, false); }
  Result<std::string> get(Arguments& arguments) { return move(arguments, true); }

  // peer, region and offset there, first counter, how often: how many went before the first Full
  Result<std::string> signal(Arguments& arguments) {
    const auto peer = next<PeerId>(arguments);
    const auto region = next<RegionId>(arguments);
    const RemoteSlice line{region, next<uint64_t>(arguments), kLineBytes};
    const auto counter = next<uint64_t>(arguments);
    const auto times = next<uint64_t>(arguments);
    Header header;
    header.signature = 5;
    header.length_and_sequence = 6;
    uint64_t sent = 0;
    while (sent < times &&
           transport_->signal(peer, 0, line, counter + sent, header) != Posted::Full) {
      ++sent;
    }
    if (const Status status = transport_->peer_status(peer); !status.ok()) return status;
    return std::to_string(sent);
  }

  // peer, region and offset here, counter, limit: until the line has it
  Result<std::string> await(Arguments& arguments) {
    const auto peer = next<PeerId>(arguments);
    const auto region = next<RegionId>(arguments);
    const auto& line = *reinterpret_cast<const Line*>(at(region, next<uint64_t>(arguments)));
    const auto counter = next<uint64_t>(arguments);
    return text_of(wait(
        peer, [&] { return line.counter.load(std::memory_order_acquire) >= counter; },
        next<int64_t>(arguments)));
  }

  using Command = Result<std::string> (Shell::*)(Arguments&);
  const std::map<std::string, Command> commands_ = {
      {"make", &Shell::make},       {"store", &Shell::store},     {"show", &Shell::show},
      {"release", &Shell::release}, {"connect", &Shell::connect}, {"offer", &Shell::offer},
      {"open", &Shell::open},       {"close", &Shell::close},     {"status", &Shell::status},
      {"put", &Shell::put},         {"get", &Shell::get},         {"signal", &Shell::signal},
      {"await", &Shell::await},
  };
  const std::unique_ptr<Transport> transport_;
  const Clock& clock_;
  std::map<RegionId, std::shared_ptr<SharedSegment>> memory_;
};

int run() {
  const SteadyClock clock;
  auto config = Config::from_environment();
  auto transport = config.ok() ? open_verbs(config.value(), clock, ThisProcess::make().take())
                               : Result<std::unique_ptr<Transport>>(config.status());
  if (!transport.ok()) {
    Shell::say(transport.status());
    return 1;
  }
  Shell(transport.take(), clock).run();
  return 0;
}

}  // namespace
}  // namespace rdmacoll

int main() { return rdmacoll::run(); }
