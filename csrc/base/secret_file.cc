// read_secret_file(). Floor: base.
#include "csrc/base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "csrc/base/limits.h"
#include "csrc/base/same_user.h"

namespace rdmacoll {
namespace {

Status refused(const std::string& path, const std::string& why) {
  return Status(StatusCode::InvalidArgument,
                "RDMACOLL_SECRET_FILE='" + path + "' " + why +
                    "; name a file of random bytes that only its owner can read (head -c 32 "
                    "/dev/urandom > FILE; chmod 600 FILE), the same on all hosts, or unset it");
}

// What was opened, not what has the name by now.
Status check(const std::string& path, int fd) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) {
    return refused(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) return refused(path, "is not a regular file");
  if (!same_user_or_root(about.st_uid)) {
    return refused(path,
                   "belongs to " + user_text(about.st_uid) + ", neither to this user nor to root");
  }
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refused(path, "is open to others than its owner");
  }
  return Status();
}

}  // namespace

Result<std::string> read_secret_file(const std::string& path) {
  if (path.empty()) return refused(path, "names no file");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang
  if (fd < 0) return refused(path, std::string("cannot be read: ") + std::strerror(errno));
  Status status = check(path, fd);
  std::string secret(kSecretBytesMax + 1, '\0');
  size_t bytes = 0;
  while (status.ok() && bytes < secret.size()) {
    const ssize_t got = ::read(fd, secret.data() + bytes, secret.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = refused(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got <= 0) break;
    bytes += static_cast<size_t>(got);
  }
  ::close(fd);
  if (!status.ok()) return status;
  if (bytes < kSecretBytesMin || bytes > kSecretBytesMax) {
    return refused(path,
                   "has " +
                       (bytes > kSecretBytesMax ? "more than " + std::to_string(kSecretBytesMax)
                                                : std::to_string(bytes)) +
                       " bytes; a secret has " + std::to_string(kSecretBytesMin) + " to " +
                       std::to_string(kSecretBytesMax));
  }
  secret.resize(bytes);
  return secret;
}

}  // namespace rdmacoll
