// operations: bytes of files. Floor: fuse_ext. Thread: any.
#include <fcntl.h>

#include "csrc/files/reading.h"
#include "fuse_ext/operations.h"

namespace rdmacoll::fuse {
namespace {

// A file that a program has open.
struct Opened {
  NodeId node = 0;
  Hold hold = 0;
  files::Parts parts{};
  std::string head{};                  // in the place of their first bytes
  std::shared_ptr<OpenDraft> draft{};  // nullptr: it is only read
};

Opened& opened_as(fuse_file_info* file) { return *reinterpret_cast<Opened*>(file->fh); }

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

std::unique_ptr<Opened> open_node(Mount& mount, NodeId id, int flags) {
  const Node node = mount.nodes().of(id);
  if (node.entry.is_folder) throw Problem{EISDIR};
  if (writes(flags) && node.is_read_only()) throw Problem{EROFS};
  // The program has found a version, which another one has begun to change before this could open
  // it. The kernel looks for the name again, and finds the version as a node of its own.
  if (!writes(flags) && node.draft != nullptr) throw Problem{ESTALE, "it is being changed"};
  auto opened = std::make_unique<Opened>(Opened{id, 0, {}, {}, node.draft});
  if (writes(flags) && node.draft == nullptr) {
    opened->draft = std::make_shared<OpenDraft>(mount.drafts(), node.place, node.entry,
                                                (flags & O_APPEND) != 0);
    mount.nodes().set_draft(id, opened->draft);
  } else if (node.draft == nullptr) {
    opened->hold = mount.names().hold(node.place, node.entry);
    opened->parts = node.entry.parts;
    if (node.entry.fixed) opened->head = node.entry.fixed->head;
  }
  if (writes(flags) && (flags & O_TRUNC) != 0) opened->draft->resize(0);
  mount.nodes().open(id);
  return opened;
}

void tell_kernel(fuse_file_info* file, const Opened& opened, bool is_mapped) {
  file->fh = reinterpret_cast<uint64_t>(&opened);
  // A page cache copies once more, and takes five to ten times as long.
  file->direct_io = is_mapped ? 0 : 1;
  file->keep_cache = is_mapped ? 1 : 0;
}

void close_node(Mount& mount, const Opened& opened) {
  const bool is_last = mount.nodes().close(opened.node);
  if (opened.draft == nullptr) {
    mount.names().release(opened.hold);
  } else if (is_last) {
    mount.nodes().set_entry(opened.node, opened.draft->seen(), true);
  }
}

// The kernel says that it is closed, unless the answer finds that the program was killed meanwhile.
void keep_if_told(Mount& mount, std::unique_ptr<Opened> opened, int told) {
  if (told == 0) {
    static_cast<void>(opened.release());
  } else {
    close_node(mount, *opened);
  }
}

void open(fuse_req_t request, fuse_ino_t id, fuse_file_info* file) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    auto opened = open_node(mount, id, file->flags);
    tell_kernel(file, *opened, mount.nodes().of(id).is_mapped);
    const int told = libfuse().reply_open(request, file);
    keep_if_told(mount, std::move(opened), told);
  });
}

void create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode,
            fuse_file_info* file) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node folder = mount.nodes().of(parent);
    if (folder.is_read_only()) throw Problem{EROFS};
    const Place place = place_in(folder, name);
    const Entry made = mount.names().create(place, mode & 07777, (file->flags & O_EXCL) != 0);
    const NodeId id = mount.nodes().add(place, made);
    auto opened = open_node(mount, id, file->flags);
    tell_kernel(file, *opened, false);
    const auto known = known_as(id, mount.nodes().of(id));
    const int told = libfuse().reply_create(request, &known, file);
    keep_if_told(mount, std::move(opened), told);
  });
}

uint64_t read(Mount& mount, const Opened& opened, uint64_t first, std::span<std::byte> out,
              const std::shared_ptr<const void>& keeps) {
  if (opened.draft != nullptr) return opened.draft->read(first, out);
  const uint64_t bytes = files::bytes_of(opened.parts);
  out = out.first(first >= bytes ? 0 : std::min<uint64_t>(out.size(), bytes - first));
  const Status status = files::read(mount.tables(), opened.parts, first, out, keeps);
  if (!status.ok()) mount.note_error(mount.nodes().of(opened.node).place, status.message());
  throw_if_failed(status);
  if (first < opened.head.size()) {
    const std::string_view head = std::string_view(opened.head).substr(first, out.size());
    std::ranges::copy(std::as_bytes(std::span(head)), out.begin());
  }
  return out.size();
}

void read(fuse_req_t request, fuse_ino_t, size_t size, off_t at, fuse_file_info* file) {
  answer(request, [&] {
    const auto first = static_cast<uint64_t>(at);
    static thread_local std::shared_ptr<std::vector<float>> room;
    // Until all of it is read: else it may be written to later.
    auto own = std::exchange(room, nullptr);
    const uint64_t floats = files::elements_of(size) + 3;
    if (own == nullptr || own->size() < floats) own = std::make_shared<std::vector<float>>(floats);
    std::byte* const data = reinterpret_cast<std::byte*>(own->data() + 1) + first % sizeof(float);
    const uint64_t count = read(mount_of(request), opened_as(file), first, {data, size}, own);
    libfuse().reply_buf(request, reinterpret_cast<const char*>(data), count);
    room = std::move(own);
  });
}

void write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t first,
           fuse_file_info* file) {
  answer(request, [&] {
    const Opened& opened = opened_as(file);
    if (opened.draft == nullptr) throw Problem{EBADF};
    // The program goes on while the bytes are copied.
    opened.draft->write(static_cast<uint64_t>(first), std::as_bytes(std::span(data, size)),
                        [&] { libfuse().reply_write(request, size); });
  });
}

void store(fuse_req_t request, fuse_file_info* file) {
  answer(request, [&] {
    const Opened& opened = opened_as(file);
    if (opened.draft != nullptr) {
      Mount& mount = mount_of(request);
      const Place place = opened.draft->place();
      try {
        opened.draft->store();
      } catch (const Problem& problem) {
        mount.note_error(place, problem.why);
        throw;
      }
      mount.note_error(place, "");
    }
    libfuse().reply_err(request, 0);
  });
}

void flush(fuse_req_t request, fuse_ino_t, fuse_file_info* file) { store(request, file); }

void synchronise(fuse_req_t request, fuse_ino_t, int, fuse_file_info* file) {
  store(request, file);
}

void synchronise_folder(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  libfuse().reply_err(request, 0);  // names are in the Store at once
}

void release(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  answer(request, [&] {
    const std::unique_ptr<const Opened> opened(&opened_as(file));
    close_node(mount_of(request), *opened);
    libfuse().reply_err(request, 0);
  });
}

// --- extended attributes -------------------------------------------------------------------------

using Attributes = std::vector<std::pair<std::string, std::string>>;

void answer_bytes(fuse_req_t request, std::string_view bytes, size_t size) {
  if (size == 0) {
    libfuse().reply_xattr(request, bytes.size());
  } else if (size < bytes.size()) {
    throw Problem{ERANGE};
  } else {
    libfuse().reply_buf(request, bytes.data(), bytes.size());
  }
}

// The newest table of a version: no other one has it, and later ones have later ones.
std::string version_of(const Entry& entry) {
  uint32_t newest = 0;
  for (const files::Part& part : entry.parts) newest = std::max(newest, part.table);
  return std::to_string(newest);
}

Attributes extended_of(Mount& mount, const Node& node) {
  Attributes all;
  const auto add = [&](const std::string& name, std::string value) {
    all.emplace_back("user.rdmacoll." + name, std::move(value));
  };
  if (!node.entry.is_folder) add("version", version_of(node.entry));
  if (node.entry.fixed) {
    for (const auto& [name, value] : node.entry.fixed->attributes) add(name, value);
  }
  const std::string error = mount.error_of(node.place);
  if (!error.empty()) add("error", error);
  return all;
}

void get_extended(fuse_req_t request, fuse_ino_t id, const char* name, size_t size) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node node = mount.nodes().of(id);
    for (const auto& [known, value] : extended_of(mount, node)) {
      if (known == name) return answer_bytes(request, value, size);
    }
    throw Problem{ENODATA};
  });
}

void list_extended(fuse_req_t request, fuse_ino_t id, size_t size) {
  answer(request, [&] {
    Mount& mount = mount_of(request);
    const Node node = mount.nodes().of(id);
    std::string all;
    for (const auto& [name, value] : extended_of(mount, node)) all.append(name).push_back('\0');
    answer_bytes(request, all, size);
  });
}

}  // namespace

void add_file_operations(fuse_lowlevel_ops& all) {
  all.open = open;
  all.create = create;
  all.read = read;
  all.write = write;
  all.flush = flush;
  all.fsync = synchronise;
  all.fsyncdir = synchronise_folder;
  all.release = release;
  all.getxattr = get_extended;
  all.listxattr = list_extended;
}

}  // namespace rdmacoll::fuse
