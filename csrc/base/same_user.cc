// UserView, from /proc. It is read each time, as a process may enter another namespace.
// Floor: base.
#include "csrc/base/same_user.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace rdmacoll {

bool UserView::is_identity(const std::string& uid_map) {
  std::istringstream words(uid_map);
  uint64_t inside = 1, outside = 1, count = 0;
  return words >> inside >> outside >> count && inside == 0 && outside == 0 && count == UINT32_MAX;
}

// Without /proc it is taken for a namespace that maps nobody.
UserView UserView::now() {
  UserView view;
  view.mine = ::geteuid();
  std::ifstream("/proc/sys/kernel/overflowuid") >> view.overflow;
  std::ifstream uid_map("/proc/self/uid_map");
  view.maps_all = is_identity(std::string(std::istreambuf_iterator<char>(uid_map), {}));
  struct stat file;
  if (::stat("/proc/self/ns/user", &file) == 0) view.user_namespace = file.st_ino;
  return view;
}

bool same_user(uid_t user) { return user == ::geteuid() && UserView::now().same(user); }

bool same_user_or_root(uid_t user) {
  return same_user(user) || (user == 0 && !UserView::now().ambiguous(user));
}

std::string user_text(uid_t user) {
  std::string text = "user " + std::to_string(user);
  if (UserView::now().ambiguous(user)) {
    text +=
        " (which stands for every user that this user namespace does not map: run as one that it "
        "maps)";
  }
  return text;
}

}  // namespace rdmacoll
