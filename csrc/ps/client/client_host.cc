// ClientHost. Floor: ps/client. Thread: any.
#include "csrc/ps/client/client_host.h"

#include <algorithm>
#include <utility>

#include "csrc/ps/wire/meeting.h"

namespace rdmacoll::ps {

Result<std::unique_ptr<ClientHost>> ClientHost::make(Remote& remote, const std::string& own_address,
                                                     const std::vector<ServerAddress>& servers,
                                                     BucketMap map, int64_t timeout_ms,
                                                     const InterruptCheck& interrupt) {
  std::unique_ptr<ClientHost> host(new ClientHost(remote));
  std::vector<Client::Server> of_client;
  for (const ServerAddress& server : servers) {
    auto line =
        call_server({remote, timeout_ms, interrupt}, own_address, server.address, server.who);
    if (!line.ok()) return line.status();
    host->lines_.push_back(line.value());
    of_client.push_back({line.take(), server.who});
  }
  host->client_ =
      std::make_unique<Client>(std::move(of_client), std::move(map), *host, host->clock_);
  return host;
}

ClientHost::~ClientHost() {
  for (const auto& line : lines_) {
    if (line->failure().ok() && line->room(0) != nullptr) line->send({.kind = RecordKind::Leave});
  }
}

Status ClientHost::wait(const Limit& limit) {
  const WorkPtr news = remote_.watch(
      [lines = lines_] {
        return std::ranges::any_of(lines, [](const auto& line) { return line->has_news(); });
      },
      "the servers have not answered in time", limit.deadline.left_ms(clock_));
  return remote_.wait(*news, -1, limit.interrupt);
}

}  // namespace rdmacoll::ps
