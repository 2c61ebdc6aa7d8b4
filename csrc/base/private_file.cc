// write_private_file(). Floor: base.
#include "csrc/base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "csrc/base/process_id.h"

namespace rdmacoll {
namespace {

// 0, or the errno of what went wrong.
int write_all(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  return 0;
}

// Every call names the opened folder: another one may have its name meanwhile.
int write_in(int folder, const std::string& name, const std::string& unfinished,
             const std::string& text) {
  const int file = ::openat(folder, unfinished.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  int error = write_all(file, text);
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) ::unlinkat(folder, unfinished.c_str(), 0);
  return error;
}

}  // namespace

Status write_private_file(const std::string& folder, const std::string& name,
                          const std::string& text) {
  auto random = random_process_id();
  if (!random.ok()) return random.status();
  ::mkdir(folder.c_str(), 0700);  // it mostly exists; if it cannot be made, open() fails
  // O_PATH: files may also be made in a folder that this user cannot list.
  const int opened = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  const int error =
      opened < 0 ? errno : write_in(opened, name, "." + name + "." + hex(random.value()), text);
  if (opened >= 0) ::close(opened);
  return error == 0 ? Status() : Status::from_errno("cannot write " + folder + "/" + name, error);
}

}  // namespace rdmacoll
