// Whether a process or a file belongs to this user, by the user id that the kernel shows for it
// (SO_PEERCRED, fstat). User ids are compared nowhere else.
//
// In a user namespace the kernel shows every user that the namespace does not map by one id, the
// overflow id. A process that runs with that id there cannot tell itself from all of them. So that
// id counts as nobody's, not even this process's own, unless the namespace maps every user to
// itself.
// Floor: base. Thread: any.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace rdmacoll {

// What this process runs as, and what the user ids that the kernel shows it mean.
struct UserView {
  uid_t mine = 0;
  uid_t overflow = 65534;  // /proc/sys/kernel/overflowuid
  bool maps_all = false;   // every user to itself, as the first namespace (/proc/self/uid_map)
  // In another one the same user may have another id. Equal in processes of one namespace of one
  // host; 0 when the kernel does not tell.
  uint64_t user_namespace = 0;

  static UserView now();
  static bool is_identity(const std::string& uid_map);
  // Whether the id may stand for many.
  bool ambiguous(uid_t user) const { return user == overflow && !maps_all; }
  bool same(uid_t user) const { return user == mine && !ambiguous(user); }
};

bool same_user(uid_t user);
bool same_user_or_root(uid_t user);
// For errors: "user 7"; of an ambiguous id it also says why that is not accepted.
std::string user_text(uid_t user);

}  // namespace rdmacoll
