// Config: the only getenv() of the engine. Floor: base.
#include "csrc/base/config.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "csrc/base/limits.h"
#include "csrc/base/secret_file.h"

namespace rdmacoll {
namespace {

Status bad_value(const std::string& name, const std::string& value, const std::string& allowed) {
  return Status(StatusCode::InvalidArgument,
                name + "='" + value + "' is not valid; use " + allowed + " or unset it");
}

void read_name(const char* name, std::string* out) {
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') *out = value;
}

Status read_choice(const char* name, const std::vector<std::string>& allowed, std::string* out) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return Status();
  RDMACOLL_RETURN_IF_ERROR(check_choice(name, value, allowed));
  *out = value;
  return Status();
}

Status read_integer(const char* name, int64_t least, int64_t most, int64_t* out,
                    const char* why = "") {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return Status();
  char* end = nullptr;
  const long long parsed = std::strtoll(value, &end, 10);
  if (*end != '\0' || parsed < least || parsed > most) {
    return bad_value(
        name, value,
        "an integer from " + std::to_string(least) + " to " + std::to_string(most) + why);
  }
  *out = parsed;
  return Status();
}

Status read_tuning(std::string* path, std::string* text) {
  const char* value = std::getenv("RDMACOLL_TUNING");
  if (value == nullptr || *value == '\0') return Status();
  const auto refused = [value](const std::string& why) {
    return Status(StatusCode::InvalidArgument,
                  std::string("RDMACOLL_TUNING='") + value + "' " + why +
                      "; name a file that `rdmacoll tune` has written, or unset it");
  };
  *path = value;
  text->resize(kTuningBytesMax + 1);
  const int fd = ::open(value, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang
  std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "rb");
  if (file == nullptr) return refused(std::string("cannot be read: ") + std::strerror(errno));
  struct stat about{};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    std::fclose(file);
    return refused("is not a regular file");
  }
  const size_t bytes = std::fread(text->data(), 1, text->size(), file);
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) return refused(std::string("cannot be read: ") + std::strerror(error));
  if (bytes > kTuningBytesMax) {
    return refused("has more than " + std::to_string(kTuningBytesMax) + " bytes");
  }
  text->resize(bytes);
  return Status();
}

Status read_secret(std::string* path, std::string* secret) {
  const char* value = std::getenv("RDMACOLL_SECRET_FILE");
  // An empty value is an error, not a job without a secret: a script whose own variable is empty
  // would otherwise start a job that anybody can join.
  if (value == nullptr) return Status();
  *path = value;
  auto read = read_secret_file(*path);
  if (!read.ok()) return read.status();
  *secret = read.take();
  return Status();
}

Status read_verbs(VerbsConfig* verbs) {
  if (const char* hca = std::getenv("RDMACOLL_HCA")) verbs->hca = hca;
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_GID_INDEX", -1, 255, &verbs->gid_index));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_IB_PORT", 0, 254, &verbs->port));
  std::string mtu = "0";
  RDMACOLL_RETURN_IF_ERROR(
      read_choice("RDMACOLL_IB_MTU", {"256", "512", "1024", "2048", "4096"}, &mtu));
  verbs->mtu_bytes = std::stoll(mtu);
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_IB_TC", 0, 255, &verbs->traffic_class));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_IB_SL", 0, 15, &verbs->service_level));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_IB_TIMEOUT", 1, 31, &verbs->timeout_exponent,
                                        " (0 would wait for ever for a dead peer)"));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_IB_RETRY_CNT", 1, 6, &verbs->retry_count,
                                        " (7 would repeat for ever on some devices)"));
  return read_integer("RDMACOLL_IB_QPS", 1, VerbsConfig::kMaxQueuePairs, &verbs->queue_pairs);
}

uint64_t fnv1a(const std::string& bytes) {
  uint64_t hash = 1469598103934665603ull;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
  return hash;
}

}  // namespace

Status check_choice(const std::string& setting, const std::string& value,
                    const std::vector<std::string>& allowed) {
  std::string list;
  for (const std::string& choice : allowed) {
    if (value == choice) return Status();
    list += (list.empty() ? "" : ", ") + choice;
  }
  return bad_value(setting, value, (allowed.size() > 1 ? "one of " : "") + list);
}

Result<Config> Config::from_environment() {
  Config config;
  std::string level = "warn";
  RDMACOLL_RETURN_IF_ERROR(read_choice("RDMACOLL_LOG", {"error", "warn", "info", "debug"}, &level));
  config.log_level = level == "error"  ? LogLevel::Error
                     : level == "warn" ? LogLevel::Warn
                     : level == "info" ? LogLevel::Info
                                       : LogLevel::Debug;
  if (const char* host = std::getenv("RDMACOLL_HOST_ID")) config.host_id = host;
  read_name("RDMACOLL_TRANSPORT", &config.transport);
  read_name("RDMACOLL_REQUIRE", &config.require);
  read_name("RDMACOLL_ALGO", &config.algorithm);
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_DETERMINISTIC", 0, 1, &config.deterministic));
  RDMACOLL_RETURN_IF_ERROR(read_tuning(&config.tuning, &config.tuning_text));
  int64_t block_bytes = static_cast<int64_t>(config.block_bytes);
  RDMACOLL_RETURN_IF_ERROR(
      read_integer("RDMACOLL_BLOCK_BYTES", 64 << 10, int64_t{1} << 30, &block_bytes));
  config.block_bytes = static_cast<uint64_t>(block_bytes);
  RDMACOLL_RETURN_IF_ERROR(
      read_integer("RDMACOLL_HEAP_BYTES", -1, int64_t{1} << 46, &config.heap_bytes));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_ZERO_COPY_LOCAL_BYTES", 1, int64_t{1} << 46,
                                        &config.zero_copy_local_bytes));
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_ZERO_COPY_REMOTE_BYTES", 1, int64_t{1} << 46,
                                        &config.zero_copy_remote_bytes));
  RDMACOLL_RETURN_IF_ERROR(
      read_choice("RDMACOLL_STORES", {"auto", "cached", "streamed"}, &config.stores));
  RDMACOLL_RETURN_IF_ERROR(
      read_integer("RDMACOLL_CONNECT_TIMEOUT_MS", 1, 86'400'000, &config.connect_timeout_ms));
  RDMACOLL_RETURN_IF_ERROR(
      read_integer("RDMACOLL_STALL_TIMEOUT_MS", 0, 86'400'000, &config.stall_timeout_ms));
  if (config.stall_timeout_ms != 0 && config.stall_timeout_ms < Config::kStallTimeoutMinMs) {
    return bad_value("RDMACOLL_STALL_TIMEOUT_MS", std::to_string(config.stall_timeout_ms),
                     "0 or " + std::to_string(Config::kStallTimeoutMinMs) + " and more");
  }
  RDMACOLL_RETURN_IF_ERROR(read_integer("RDMACOLL_SPIN_US", -1, 1'000'000, &config.spin_us));
  RDMACOLL_RETURN_IF_ERROR(
      read_integer("RDMACOLL_FLIGHT_RECORDS", 0, 1 << 20, &config.flight_records));
  if (const char* folder = std::getenv("RDMACOLL_DUMP_DIR")) config.dump_dir = folder;
  RDMACOLL_RETURN_IF_ERROR(read_secret(&config.secret_file, &config.secret));
  RDMACOLL_RETURN_IF_ERROR(read_verbs(&config.verbs));
  // Not ours, so not ours to refuse.
  for (const auto& [name, rank] :
       {std::pair{"LOCAL_RANK", &config.local_rank},
        std::pair{"LOCAL_WORLD_SIZE", &config.local_world}, std::pair{"RANK", &config.rank}}) {
    [[maybe_unused]] const Status unset = read_integer(name, 0, INT32_MAX, rank);
  }
  return config;
}

uint64_t Config::agreement_hash() const {
  return fnv1a(algorithm + "|" + std::to_string(block_bytes) + "|" + transport + "|" +
               std::to_string(verbs.queue_pairs) + "|" + std::to_string(deterministic) + "|" +
               tuning_text);
}

}  // namespace rdmacoll
