// Config. Floor: base.
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

Status read_tuning(const Settings& settings, FileSetting* tuning) {
  settings.read_text("RDMACOLL_TUNING", &tuning->path);
  if (tuning->path.empty()) return Status();
  const auto refused = [tuning](const std::string& why) {
    return Status(StatusCode::InvalidArgument,
                  "RDMACOLL_TUNING='" + tuning->path + "' " + why +
                      "; name a file that `rdmacoll tune` has written, or unset it");
  };
  std::string& text = tuning->text;
  text.resize(kTuningBytesMax + 1);
  const int fd =
      ::open(tuning->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang
  std::FILE* file = fd < 0 ? nullptr : ::fdopen(fd, "rb");
  if (file == nullptr) return refused(std::string("cannot be read: ") + std::strerror(errno));
  struct stat about{};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    std::fclose(file);
    return refused("is not a regular file");
  }
  const size_t bytes = std::fread(text.data(), 1, text.size(), file);
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) return refused(std::string("cannot be read: ") + std::strerror(error));
  if (bytes > kTuningBytesMax) {
    return refused("has more than " + std::to_string(kTuningBytesMax) + " bytes");
  }
  text.resize(bytes);
  return Status();
}

Status read_secret(const Settings& settings, FileSetting* secret) {
  const std::string* value = settings.find("RDMACOLL_SECRET_FILE");
  // An empty value is an error, not a job without a secret: a script whose own variable is empty
  // would otherwise start a job that anybody can join.
  if (value == nullptr) return Status();
  secret->path = *value;
  auto read = read_secret_file(secret->path);
  if (!read.ok()) return read.status();
  secret->text = read.take();
  return Status();
}

}  // namespace

Result<Config> Config::from_environment() {
  Config config;
  const Settings& settings = config.settings = Settings::from_environment();
  std::string level = "warn";
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_choice("RDMACOLL_LOG", {"error", "warn", "info", "debug"}, &level));
  config.log_level = level == "error"  ? LogLevel::Error
                     : level == "warn" ? LogLevel::Warn
                     : level == "info" ? LogLevel::Info
                                       : LogLevel::Debug;
  settings.read_text("RDMACOLL_HOST_ID", &config.host_id);
  settings.read_text("RDMACOLL_TRANSPORT", &config.transport);
  settings.read_text("RDMACOLL_REQUIRE", &config.require);
  settings.read_text("RDMACOLL_ALGO", &config.algorithm);
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_choice("RDMACOLL_DETERMINISTIC", {"0", "1", "layout"}, &config.deterministic));
  RDMACOLL_RETURN_IF_ERROR(read_tuning(settings, &config.tuning));
  int64_t block_bytes = static_cast<int64_t>(config.block_bytes);
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_BLOCK_BYTES", 64 << 10, int64_t{1} << 30, &block_bytes));
  config.block_bytes = static_cast<uint64_t>(block_bytes);
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_HEAP_BYTES", -1, int64_t{1} << 46, &config.heap_bytes));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_ZERO_COPY_LOCAL_BYTES", 1,
                                                 int64_t{1} << 46, &config.zero_copy_local_bytes));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_ZERO_COPY_REMOTE_BYTES", 1,
                                                 int64_t{1} << 46, &config.zero_copy_remote_bytes));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_choice("RDMACOLL_STORES", {"auto", "cached", "streamed"}, &config.stores));
  RDMACOLL_RETURN_IF_ERROR(settings.read_integer("RDMACOLL_CONNECT_TIMEOUT_MS", 1, 86'400'000,
                                                 &config.connect_timeout_ms));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_STALL_TIMEOUT_MS", 0, 86'400'000, &config.stall_timeout_ms));
  if (config.stall_timeout_ms != 0 && config.stall_timeout_ms < Config::kStallTimeoutMinMs) {
    return bad_value("RDMACOLL_STALL_TIMEOUT_MS", std::to_string(config.stall_timeout_ms),
                     "0 or " + std::to_string(Config::kStallTimeoutMinMs) + " and more");
  }
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_SPIN_US", -1, 1'000'000, &config.spin_us));
  RDMACOLL_RETURN_IF_ERROR(
      settings.read_integer("RDMACOLL_FLIGHT_RECORDS", 0, 1 << 20, &config.flight_records));
  settings.read_text("RDMACOLL_DUMP_DIR", &config.dump_dir);
  RDMACOLL_RETURN_IF_ERROR(read_secret(settings, &config.secret));
  // Not ours, so not ours to refuse.
  for (const auto& [name, rank] : {std::pair{"LOCAL_RANK", &config.place.local_rank},
                                   std::pair{"LOCAL_WORLD_SIZE", &config.place.local_world},
                                   std::pair{"RANK", &config.place.rank}}) {
    [[maybe_unused]] const Status unset = settings.read_integer(name, 0, INT32_MAX, rank);
  }
  return config;
}

std::string Config::agreement() const {
  return algorithm + "|" + std::to_string(block_bytes) + "|" + transport + "|" + deterministic +
         "|" + tuning.text;
}

}  // namespace rdmacoll
