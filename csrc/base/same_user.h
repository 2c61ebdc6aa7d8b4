// Whose process or file it is, by the user id that the kernel shows (SO_PEERCRED, fstat). The one
// place that compares user ids.
//
// In a user namespace the kernel shows every user that the namespace does not map by one id, the
// overflow id. A process that runs with that id there cannot tell itself from all of them. So that
// id is nobody's here, not even one's own, unless the namespace maps every user to itself.
// Floor: base. Thread: any.
#pragma once

#include <sys/types.h>

#include <string>

namespace rdmacoll {

// What this process runs as, and what of it the kernel says.
struct UserView {
  uid_t mine = 0;
  uid_t overflow = 65534;  // /proc/sys/kernel/overflowuid
  bool maps_all = false;   // every user to itself: /proc/self/uid_map of the first namespace

  static UserView now();
  static bool is_identity(const std::string& uid_map);
  // Whether the id may stand for many.
  bool ambiguous(uid_t user) const { return user == overflow && !maps_all; }
  bool same(uid_t user) const { return user == mine && !ambiguous(user); }
};

bool same_user(uid_t user);
bool same_user_or_root(uid_t user);
// For errors: "user 7", and what is the matter with it where it may stand for many.
std::string user_text(uid_t user);

}  // namespace rdmacoll
