// Client: the steps of workers that wait for each other. Floor: ps/client. Thread: any.
#include <algorithm>
#include <cstring>
#include <utility>

#include "csrc/base/printable.h"
#include "csrc/ps/client/client.h"

namespace rdmacoll::ps {

Status no_pace(const TableSpec& spec) {
  return Status(StatusCode::InvalidArgument, "the workers of table '" + printable(spec.name) +
                                                 "' do not go in step; push and pull without one");
}

template <typename CallShard>
BatchPtr Client::paced_batch(uint32_t table, uint32_t workers, CallShard call_shard) {
  return as_batch([&](Lock& lock, const BatchPtr& batch) {
    if (workers == 0 || workers > kMostPaced) {
      return Status(StatusCode::InvalidArgument, std::to_string(workers) +
                                                     " workers that go in step; give 1 to " +
                                                     std::to_string(kMostPaced));
    }
    auto spec = spec_of(table, TableKind::Dense);
    if (!spec.ok()) return spec.status();
    if (!spec.value()->pace) return no_pace(*spec.value());
    for (uint32_t shard = 0; shard < spec.value()->paced_shards(); ++shard) {
      RDMACOLL_RETURN_IF_ERROR(call_shard(lock, batch, shard));
    }
    return Status();
  });
}

BatchPtr Client::begin_generation(uint32_t table, Generation generation, uint32_t step,
                                  const Limit& limit) {
  return paced_batch(
      table, generation.workers, [&](Lock& lock, const BatchPtr& batch, uint32_t shard) {
        const RecordHead head{.kind = RecordKind::Push,
                              .code = static_cast<uint16_t>(PushAs::Generation),
                              .table = table,
                              .parts = 1,
                              .shard = shard,
                              .first = generation.number,
                              .rank = generation.workers,
                              .step = step};
        PushPart part{.bucket = bucket_of_shard(table, shard)};
        const auto write = [&](std::byte* body) {
          part.push = next_push(part.bucket);
          std::memcpy(body, &part, sizeof(part));
        };
        return ask(lock, map_.of(part.bucket).primary, {batch, head}, sizeof(part), write, limit);
      });
}

Result<std::vector<uint32_t>> Client::pull_steps(uint32_t table, uint32_t workers,
                                                 const Limit& limit) {
  using Steps = std::vector<uint32_t>;
  const auto of_shards = std::make_shared<std::vector<std::shared_ptr<Steps>>>();
  const BatchPtr batch =
      paced_batch(table, workers, [&](Lock& lock, const BatchPtr& of, uint32_t shard) {
        const auto& steps = of_shards->emplace_back(std::make_shared<Steps>(workers));
        auto* const into = reinterpret_cast<std::byte*>(steps->data());
        const RecordHead head{
            .kind = RecordKind::PullSteps, .table = table, .shard = shard, .count = workers};
        const ServerId server = map_.of(bucket_of_shard(table, shard)).primary;
        return ask(lock, server, {of, head, into, {}, steps}, 0, [](std::byte*) {}, limit);
      });
  RDMACOLL_RETURN_IF_ERROR(wait(batch, limit));
  Steps reached(workers, kNoWorker);
  for (const auto& steps : *of_shards) {
    std::ranges::transform(reached, *steps, reached.begin(),
                           [](uint32_t one, uint32_t other) { return std::min(one, other); });
  }
  std::ranges::replace(reached, kNoWorker, 0u);
  return reached;
}

}  // namespace rdmacoll::ps
