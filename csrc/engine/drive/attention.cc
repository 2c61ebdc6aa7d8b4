// Attention. Floor: engine/drive. Thread: see attention.h.
#include "csrc/engine/drive/attention.h"

#include <poll.h>

#include <array>
#include <span>

#include "csrc/base/limits.h"

namespace rdmacoll {
namespace {

constexpr int kWithoutEnd = -1;

}  // namespace

bool Attention::is_needed() const {
  const std::span<Transport* const> used = transports_.in_use();
  return std::any_of(used.begin(), used.end(),
                     [](const Transport* one) { return one->info().attention_fd >= 0; });
}

Attention::End Attention::sleep(Patience& patience) const {
  std::array<pollfd, 1 + kMaxTransports> waited{{{wake_fd_.get(), POLLIN, 0}}};
  size_t count = 1;
  for (const Transport* transport : transports_.in_use()) {
    const int fd = transport->info().attention_fd;
    if (fd >= 0) waited[count++] = {fd, POLLIN, 0};
  }
  if (::poll(waited.data(), count, kWithoutEnd) < 0) return End::Woken;
  bool others_drive = false;
  const uint64_t turn = role_.turns();
  if (waited[0].revents == 0 && (somebody_is_at_it() || patience.is_due(turn))) {
    ::poll(waited.data(), 1, patience.ms());
    others_drive = somebody_is_at_it() || role_.turns() != turn;
    patience.note(others_drive);
  }
  if (waited[0].revents == 0) return others_drive ? End::Theirs : End::Nobodys;
  wake_fd_.drain();
  return End::Woken;
}

}  // namespace rdmacoll
