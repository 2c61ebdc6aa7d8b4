// An address and the key of a block as the engine takes them apart: what is left for the transport,
// which island it names, and how much of a peer's heap is read afterwards. An input is an address,
// or behind one byte a key.
#include "csrc/engine/connect/transports.h"
#include "tests/fuzz/target.h"
#include "tests/unit/engine/fake_transport.h"

namespace rdmacoll::fuzz {
namespace {

constexpr char kIsKey = '\xFF';  // no address that parses begins with it

struct Side {
  Side() : transports({&fake}, {"host", "name"}, config, clock) {
    fake.share_memory();
    fake.open_as = {Heap::kRegion, &heap, sizeof(heap)};
  }
  std::byte heap{};  // of the peer, who may say that it is larger
  FakeTransport fake{"shm", "its address"};
  const Config config;
  const ManualClock clock;
  Transports transports;
};

}  // namespace

std::vector<std::string> seeds() {
  const TaggedFields key{{"shm", "+key"}, {"verbs", "-no memory may be locked"}};
  const TaggedFields refused{{"shm", "-no memory may be locked"}};
  const TaggedFields address{{"shm", "its address"},
                             {"host id", "host"},
                             {"host name", "h"},
                             {"island", "an island"},
                             {"heap", bytes_of(uint64_t{1}) + encode(key)}};
  return {encode(address), kIsKey + encode(key), kIsKey + encode(refused)};
}

void run(const std::string& bytes) {
  Side side;
  const Deadline deadline = Deadline::after_ms(side.clock, 1);
  if (bytes.starts_with(kIsKey)) {
    const Path path{.transport = &side.fake, .peer = 7};
    const Status opened = side.transports.open_region(path, bytes.substr(1), deadline).status();
    if (!opened.ok()) return check_error(opened);
    RDMACOLL_CHECK(bytes.find(side.fake.opened.back()) != bytes.npos);
    return;
  }
  RDMACOLL_CHECK(bytes.find(Transports::island_of(bytes)) != bytes.npos);
  auto path = side.transports.look(bytes, false);
  if (!path.ok()) return check_error(path.status());
  RDMACOLL_CHECK(path.value().transport == &side.fake);
  auto heap = side.transports.open_heap(path.value(), deadline);
  if (!heap.ok()) return check_error(heap.status());
  RDMACOLL_CHECK(heap.value().size() <= sizeof(side.heap));
}

}  // namespace rdmacoll::fuzz
