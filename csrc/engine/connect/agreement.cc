// agreement_hash(). Floor: engine/connect.
#include "csrc/engine/connect/agreement.h"

#include <string>

#include "csrc/engine/connect/transport_table.h"

namespace rdmacoll {
namespace {

uint64_t fnv1a(const std::string& bytes) {
  uint64_t hash = 1469598103934665603ull;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
  return hash;
}

}  // namespace

uint64_t agreement_hash(const Config& config) {
  std::string all = config.agreement();
  for (const TransportRow& row : transport_table()) all += "|" + row.agreement(config.settings);
  return fnv1a(all);
}

}  // namespace rdmacoll
