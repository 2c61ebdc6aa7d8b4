// operations: names. Floor: fuse_ext. Thread: any.
#include "fuse_ext/operations.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <optional>

namespace rdmacoll::fuse {
namespace {

constexpr const char* kMappedName = ".mmap";
constexpr size_t kMostName = 255;
constexpr int64_t kNs = 1'000'000'000;
constexpr uint32_t kBlockBytes = 4096;

void check_writable(const Node& node) {
  if (node.is_read_only()) throw Problem{EROFS};
}

void init(void*, fuse_conn_info* connection) {
  // Bytes are copied once more through a pipe.
  connection->want &= ~(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

void look_up(fuse_req_t request, fuse_ino_t parent, const char* name) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node folder = mount.nodes().of(parent);
    if (parent == kRoot && std::strcmp(name, kMappedName) == 0) {
      const auto mapped = known_as(kMappedRoot, mount.nodes().of(kMappedRoot));
      libfuse().reply_entry(request, &mapped);
      return;
    }
    const Place place = place_in(folder, name);
    const auto found = mount.names().find(place);
    // Pages of a table would stay as they were when they were first read.
    if (!found || (folder.is_mapped && found->fixed)) throw Problem{ENOENT};
    const NodeId id = mount.nodes().look(place, *found, folder.is_mapped);
    const auto known = known_as(id, mount.nodes().of(id));
    libfuse().reply_entry(request, &known);
  });
}

void forget(fuse_req_t request, fuse_ino_t id, uint64_t lookups) {
  mount_of(request).nodes().forget(id, lookups);
  libfuse().reply_none(request);
}

void forget_many(fuse_req_t request, size_t count, fuse_forget_data* all) {
  for (size_t i = 0; i < count; ++i) mount_of(request).nodes().forget(all[i].ino, all[i].nlookup);
  libfuse().reply_none(request);
}

// Of a folder with its own time, which the folder that it is in does not have.
struct stat newest(Mount& mount, NodeId id) {
  Node node = mount.nodes().of(id);
  if (!node.entry.is_folder) return about(id, node);
  try {
    const int64_t changed_ns = mount.names().changed_ns(node.entry.folder);
    if (changed_ns != 0) node.entry.modified_ns = changed_ns;
  } catch (const Problem&) {
    // Without the Store it is a mount still, and who looks for that finds it.
  }
  return about(id, node);
}

void get_attributes(fuse_req_t request, fuse_ino_t id, fuse_file_info*) {
  answer(request, [&] {
    const struct stat stat = newest(mount_of(request), id);
    libfuse().reply_attr(request, &stat, 0);
  });
}

std::optional<int64_t> time_in(const struct stat& wanted, int set) {
  if ((set & FUSE_SET_ATTR_MTIME_NOW) != 0) {
    timespec now = {};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * kNs + now.tv_nsec;
  }
  if ((set & FUSE_SET_ATTR_MTIME) == 0) return std::nullopt;
  return wanted.st_mtim.tv_sec * kNs + wanted.st_mtim.tv_nsec;
}

void set_size(Mount& mount, NodeId id, uint64_t bytes) {
  const Node node = mount.nodes().of(id);
  if (node.draft != nullptr) return node.draft->resize(bytes);
  auto draft = std::make_shared<OpenDraft>(mount.drafts(), node.place, node.entry, false);
  mount.nodes().set_draft(id, draft);
  try {
    draft->resize(bytes);
    mount.nodes().set_entry(id, draft->store(), true);
  } catch (const Problem&) {
    mount.nodes().set_entry(id, node.entry, true);
    throw;
  }
}

void set_others(Mount& mount, NodeId id, std::optional<int64_t> modified_ns,
                std::optional<uint32_t> mode) {
  const Node node = mount.nodes().of(id);
  if (node.draft != nullptr) return node.draft->change(modified_ns, mode);
  Entry wanted = node.entry;
  if (modified_ns && wanted.is_folder) {
    mount.names().set_changed_ns(wanted.folder, *modified_ns);
  } else if (modified_ns) {
    wanted.modified_ns = *modified_ns;
  }
  if (mode) wanted.mode = *mode;
  if (wanted == node.entry || id == kRoot) return;
  mount.names().change(node.place, node.entry, wanted);
  mount.nodes().set_entry(id, wanted, false);
}

void set_attributes(fuse_req_t request, fuse_ino_t id, struct stat* wanted, int set,
                    fuse_file_info*) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node node = mount.nodes().of(id);
    check_writable(node);
    const struct stat was = about(id, node);
    if ((set & FUSE_SET_ATTR_UID) != 0 && wanted->st_uid != was.st_uid) throw Problem{EPERM};
    if ((set & FUSE_SET_ATTR_GID) != 0 && wanted->st_gid != was.st_gid) throw Problem{EPERM};
    if ((set & FUSE_SET_ATTR_SIZE) != 0) {
      set_size(mount, id, static_cast<uint64_t>(wanted->st_size));
    }
    std::optional<uint32_t> mode;
    if ((set & FUSE_SET_ATTR_MODE) != 0) mode = wanted->st_mode & 07777;
    const auto modified_ns = time_in(*wanted, set);
    if (mode || modified_ns) set_others(mount, id, modified_ns, mode);
    const struct stat is = newest(mount, id);
    libfuse().reply_attr(request, &is, 0);
  });
}

void make_folder(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node folder = mount.nodes().of(parent);
    check_writable(folder);
    const Place place = place_in(folder, name);
    const Entry made = mount.names().make_folder(place, mode & 07777);
    const NodeId id = mount.nodes().look(place, made, false);
    const auto known = known_as(id, mount.nodes().of(id));
    libfuse().reply_entry(request, &known);
  });
}

// Without these programs are told that the call is unknown, and not that links are.
void make_symbolic_link(fuse_req_t request, const char*, fuse_ino_t, const char*) {
  libfuse().reply_err(request, EPERM);
}

void make_link(fuse_req_t request, fuse_ino_t, fuse_ino_t, const char*) {
  libfuse().reply_err(request, EPERM);
}

// Programs that write to it go on, and nobody sees it any more.
void remove_drafts(Mount& mount, const Place& place) {
  for (const auto& draft : mount.nodes().drafts(&place)) draft->remove();
}

void remove_file(fuse_req_t request, fuse_ino_t parent, const char* name) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node folder = mount.nodes().of(parent);
    check_writable(folder);
    const Place place = place_in(folder, name);
    mount.names().remove_file(place);
    remove_drafts(mount, place);
    libfuse().reply_err(request, 0);
  });
}

void remove_folder(fuse_req_t request, fuse_ino_t parent, const char* name) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node folder = mount.nodes().of(parent);
    check_writable(folder);
    mount.names().remove_folder(place_in(folder, name));
    libfuse().reply_err(request, 0);
  });
}

void rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
            const char* new_name, unsigned flags) {
  answer(request, [&] {
    constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE
    if ((flags & ~kNoReplace) != 0) throw Problem{EINVAL};
    Mount& mount = mount_of(request);
    const Node from_folder = mount.nodes().of(parent);
    const Node to_folder = mount.nodes().of(new_parent);
    check_writable(from_folder);
    check_writable(to_folder);
    const Place from = place_in(from_folder, name);
    const Place to = place_in(to_folder, new_name);
    // Nobody would find it there. Of what else makes a name the kernel knows that it is taken.
    if (new_parent == kRoot && to.name == kMappedName) throw Problem{EEXIST};
    const auto moved = mount.nodes().drafts(&from);
    mount.names().move(from, to, (flags & kNoReplace) != 0);
    remove_drafts(mount, to);
    for (const auto& draft : moved) draft->move(to);
    mount.nodes().move(from, to);
    libfuse().reply_err(request, 0);
  });
}

// --- folders that are read -----------------------------------------------------------------------

using Listed = std::vector<std::pair<std::string, uint32_t>>;  // names, and what they are

void open_folder(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    auto listed = std::make_unique<Listed>(Listed{{".", S_IFDIR}, {"..", S_IFDIR}});
    for (auto& [name, entry] : mount.names().list(mount.nodes().of(id).entry.folder)) {
      listed->emplace_back(std::move(name), entry.is_folder ? S_IFDIR : S_IFREG);
    }
    file->fh = reinterpret_cast<uint64_t>(listed.get());
    if (libfuse().reply_open(request, file) == 0) static_cast<void>(listed.release());
  });
}

void read_folder(fuse_req_t request, fuse_ino_t, size_t size, off_t first, fuse_file_info* file) {
  answer(request, [&] {
    const auto& listed = *reinterpret_cast<const Listed*>(file->fh);
    std::vector<char> out(size);
    size_t used = 0;
    for (auto i = static_cast<size_t>(first); i < listed.size(); ++i) {
      struct stat stat = {};
      stat.st_ino = 0xffffffff;  // it has none before it is looked up
      stat.st_mode = listed[i].second;
      const size_t more =
          libfuse().add_direntry(request, out.data() + used, size - used, listed[i].first.c_str(),
                                 &stat, static_cast<off_t>(i + 1));
      if (used + more > size) break;
      used += more;
    }
    libfuse().reply_buf(request, out.data(), used);
  });
}

void close_folder(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  delete reinterpret_cast<Listed*>(file->fh);
  libfuse().reply_err(request, 0);
}

void about_all(fuse_req_t request, fuse_ino_t) {
  answer(request, [&] {
    const Names::Space space = mount_of(request).names().space();
    struct statvfs all = {};
    all.f_bsize = all.f_frsize = kBlockBytes;
    all.f_blocks = space.bytes / kBlockBytes;
    all.f_bfree = all.f_bavail = space.free_bytes / kBlockBytes;
    all.f_namemax = kMostName;
    libfuse().reply_statfs(request, &all);
  });
}

}  // namespace

Place place_in(const Node& folder, const char* name) {
  if (std::strlen(name) > kMostName) throw Problem{ENAMETOOLONG};
  return {folder.entry.folder, name};
}

struct stat about(NodeId id, const Node& node) {
  const Entry entry = node.draft == nullptr ? node.entry : node.draft->seen();
  struct stat stat = {};
  stat.st_ino = id;
  stat.st_uid = getuid();
  stat.st_gid = getgid();
  stat.st_blksize = kBlockBytes;
  stat.st_mtim = {entry.modified_ns / kNs, entry.modified_ns % kNs};
  if (entry.fixed) clock_gettime(CLOCK_REALTIME, &stat.st_mtim);  // it is changed all the time
  stat.st_atim = stat.st_ctim = stat.st_mtim;
  stat.st_mode = (entry.is_folder ? S_IFDIR : S_IFREG) | entry.mode;
  stat.st_nlink = entry.is_folder ? 2 : 1;
  if (!entry.is_folder) {
    const uint64_t bytes =
        node.draft == nullptr ? files::bytes_of(entry.parts) : node.draft->bytes();
    stat.st_size = static_cast<off_t>(bytes);
    stat.st_blocks = static_cast<blkcnt_t>((bytes + 511) / 512);
  }
  return stat;
}

fuse_entry_param known_as(NodeId id, const Node& node) {
  fuse_entry_param known = {};
  known.ino = id;
  known.attr = about(id, node);
  return known;  // for no time: other processes change what is there
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all = {};
  all.init = init;
  all.lookup = look_up;
  all.forget = forget;
  all.forget_multi = forget_many;
  all.getattr = get_attributes;
  all.setattr = set_attributes;
  all.mkdir = make_folder;
  all.symlink = make_symbolic_link;
  all.link = make_link;
  all.unlink = remove_file;
  all.rmdir = remove_folder;
  all.rename = rename;
  all.opendir = open_folder;
  all.readdir = read_folder;
  all.releasedir = close_folder;
  all.statfs = about_all;
  add_file_operations(all);
  return all;
}

}  // namespace rdmacoll::fuse
