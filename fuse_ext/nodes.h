// Nodes: what the kernel knows of the mount. Each version of a file is a node of its own, so who
// has opened one keeps to it; so is a draft, until it is stored. Floor: fuse_ext. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fuse_ext/names.h"
#include "fuse_ext/open_draft.h"

namespace rdmacoll::fuse {

using NodeId = uint64_t;
inline constexpr NodeId kRoot = 1;
inline constexpr NodeId kMappedRoot = 2;  // the same files once more, which can be mapped

struct Node {
  Place place{};
  Entry entry{};
  bool is_mapped = false;
  uint32_t opened = 0;  // how often, and not closed
  std::shared_ptr<OpenDraft> draft{};

  bool is_read_only() const { return is_mapped || entry.fixed.has_value(); }
};

class Nodes {
 public:
  Nodes();

  // Throws a Problem (ESTALE).
  Node of(NodeId id);
  // The kernel has looked it up once more.
  NodeId look(const Place& place, const Entry& entry, bool is_mapped);
  void forget(NodeId id, uint64_t lookups);
  // Of a new file, that is being written.
  NodeId add(const Place& place, const Entry& entry);

  void open(NodeId id);
  // Whether nobody has it open any more. The kernel may have forgotten it by then.
  bool close(NodeId id);
  // For who is to write to it. Throws a Problem (ESTALE) where others have it open: the kernel
  // looks for it again then, and finds another node.
  void set_draft(NodeId id, std::shared_ptr<OpenDraft> draft);
  // Who looks for this version finds this node. is_over: the draft is no more.
  void set_entry(NodeId id, const Entry& entry, bool is_over);
  void move(const Place& from, const Place& to);
  // Those of the name; nullptr: all.
  std::vector<std::shared_ptr<OpenDraft>> drafts(const Place* place);

 private:
  using Clock = std::chrono::steady_clock;
  struct Known {
    Node node;
    uint64_t lookups = 0;
    std::string key{};  // empty: it is not found
  };
  static std::string key_of(const Node& node);
  Known& known(NodeId id);
  void hide(Known& one);
  void show(NodeId id, Known& one);

  std::mutex mutex_;  // what follows
  std::map<NodeId, Known> all_;
  std::map<std::string, NodeId> by_key_;
  // Names under which each look finds a new node until then.
  std::map<std::pair<uint64_t, std::string>, Clock::time_point> contested_;
  NodeId last_ = kMappedRoot;
};

}  // namespace rdmacoll::fuse
