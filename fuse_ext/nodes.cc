// Nodes. Floor: fuse_ext. Thread: any.
#include "fuse_ext/nodes.h"

#include "fuse_ext/problem.h"

namespace rdmacoll::fuse {
namespace {

// The kernel looks for a name again at once.
constexpr std::chrono::seconds kContested{1};

}  // namespace

Nodes::Nodes() {
  const Entry root{.is_folder = true, .mode = 0755};
  for (const NodeId id : {kRoot, kMappedRoot}) {
    all_[id] = {{.entry = root, .is_mapped = id == kMappedRoot}, 1};
  }
}

// A table is of one version, but for one that others were added to.
std::string Nodes::key_of(const Node& node) {
  const Entry& entry = node.entry;
  std::string key = (node.is_mapped ? "m" : "d") + std::to_string(node.place.folder) + '/' +
                    node.place.name + '/';
  if (entry.is_folder) return key + std::to_string(entry.folder);
  key += std::to_string(entry.modified_ns) + ' ' + std::to_string(entry.mode);
  for (const files::Part& part : entry.parts) {
    key += ' ' + std::to_string(part.table) + ':' + std::to_string(part.bytes);
  }
  return key;
}

Nodes::Known& Nodes::known(NodeId id) {
  const auto found = all_.find(id);
  if (found == all_.end())
    throw Problem{ESTALE, "the kernel asks for a node that it has forgotten"};
  return found->second;
}

void Nodes::hide(Known& one) {
  by_key_.erase(one.key);
  one.key.clear();
}

void Nodes::show(NodeId id, Known& one) {
  hide(one);
  std::string key = key_of(one.node);
  if (by_key_.try_emplace(key, id).second) one.key = std::move(key);
}

Node Nodes::of(NodeId id) {
  const std::lock_guard lock(mutex_);
  return known(id).node;
}

NodeId Nodes::look(const Place& place, const Entry& entry, bool is_mapped) {
  const Node node{.place = place, .entry = entry, .is_mapped = is_mapped};
  const std::lock_guard lock(mutex_);
  const auto contested = contested_.find({place.folder, place.name});
  bool is_contested = contested != contested_.end() && !entry.is_folder;
  if (is_contested && contested->second < Clock::now()) {
    contested_.erase(contested);
    is_contested = false;
  }
  if (!is_contested) {
    const auto found = by_key_.find(key_of(node));
    if (found != by_key_.end()) {
      Known& same = all_.at(found->second);
      same.node.entry = entry;  // of a folder others may have changed the permissions
      ++same.lookups;
      return found->second;
    }
  }
  Known& added = all_[++last_] = {node, 1};
  if (!is_contested) show(last_, added);
  return last_;
}

NodeId Nodes::add(const Place& place, const Entry& entry) {
  const std::lock_guard lock(mutex_);
  all_[++last_] = {{.place = place, .entry = entry}, 1};
  return last_;
}

void Nodes::forget(NodeId id, uint64_t lookups) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end() || id == kRoot || id == kMappedRoot) return;
  Known& one = found->second;
  one.lookups -= std::min(lookups, one.lookups);
  if (one.lookups > 0) return;
  hide(one);
  all_.erase(found);
}

void Nodes::open(NodeId id) {
  const std::lock_guard lock(mutex_);
  ++known(id).node.opened;
}

bool Nodes::close(NodeId id) {
  const std::lock_guard lock(mutex_);
  const auto found = all_.find(id);
  return found != all_.end() && --found->second.node.opened == 0;
}

void Nodes::set_draft(NodeId id, std::shared_ptr<OpenDraft> draft) {
  const std::lock_guard lock(mutex_);
  Known& one = known(id);
  hide(one);
  if (one.node.opened > 0) {
    const Place& place = one.node.place;
    contested_[{place.folder, place.name}] = Clock::now() + kContested;
    throw Problem{ESTALE, "others have this version open"};
  }
  one.node.draft = std::move(draft);
}

void Nodes::set_entry(NodeId id, const Entry& entry, bool is_over) {
  const std::lock_guard lock(mutex_);
  Known& one = known(id);
  one.node.entry = entry;
  if (is_over) one.node.draft.reset();
  if (one.node.draft == nullptr) show(id, one);
}

void Nodes::move(const Place& from, const Place& to) {
  const std::lock_guard lock(mutex_);
  for (auto& [id, one] : all_) {
    if (one.node.place != from || id == kRoot || id == kMappedRoot) continue;
    one.node.place = to;
    if (!one.key.empty()) show(id, one);
  }
}

std::vector<std::shared_ptr<OpenDraft>> Nodes::drafts(const Place* place) {
  std::vector<std::shared_ptr<OpenDraft>> found;
  const std::lock_guard lock(mutex_);
  for (auto& [id, one] : all_) {
    if (one.node.draft == nullptr) continue;
    if (place == nullptr || one.node.place == *place) found.push_back(one.node.draft);
  }
  return found;
}

}  // namespace rdmacoll::fuse
