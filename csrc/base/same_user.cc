// UserView, from /proc. Read each time: a process may enter another namespace. Floor: base.
#include "csrc/base/same_user.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace rdmacoll {
namespace {

std::string content_of(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

bool UserView::is_identity(const std::string& uid_map) {
  std::istringstream words(uid_map);
  uint64_t inside = 1, outside = 1, count = 0;
  return words >> inside >> outside >> count && inside == 0 && outside == 0 && count == UINT32_MAX;
}

// Without /proc: as in a namespace that maps nobody.
UserView UserView::now() {
  UserView view;
  view.mine = ::geteuid();
  std::istringstream(content_of("/proc/sys/kernel/overflowuid")) >> view.overflow;
  view.maps_all = is_identity(content_of("/proc/self/uid_map"));
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
