// Communicator's collectives: arguments checked, bound to memory, handed to the group.
// Floor: engine. Thread: any.
#include <algorithm>
#include <numeric>

#include "csrc/base/check.h"
#include "csrc/engine/communicator.h"
#include "csrc/plan/selection/select.h"

namespace rdmacoll {
namespace {

// Blocks are cut at cache lines; a multiple of every dtype's bytes.
constexpr uint64_t kGrainBytes = 64;
constexpr Reduction kNoReduction{DType::UInt8, ReduceOp::Sum, 1};
constexpr uint64_t kShortBytes = 1 << 20;  // takes less time than waking a thread for it

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xFF51AFD7ED558CCDull;
}

// Of what all ranks must agree about, whatever their share of a scattered operation.
uint32_t signature_of(const Operation& operation) {
  uint64_t hash = mix(static_cast<uint64_t>(operation.plan->collective) + 1,
                      static_cast<uint64_t>(operation.plan->algorithm));
  hash = mix(hash, static_cast<uint64_t>(operation.reduction.dtype));
  hash = mix(hash, static_cast<uint64_t>(operation.reduction.op));
  hash = mix(hash, operation.root);
  hash = mix(hash, operation.bytes);
  hash = mix(hash, operation.also_equal);
  if (operation.equal_blocks) hash = mix(hash, operation.block_bytes.front() + 1);
  return static_cast<uint32_t>(hash >> 32);
}

template <typename Buffers>
uint64_t total_bytes(const Buffers& buffers) {
  uint64_t total = 0;
  for (const auto& buffer : buffers) total += buffer.bytes;
  return total;
}

Status sizes_differ(const std::string& first, uint64_t bytes, const std::string& second,
                    uint64_t other) {
  return Status(StatusCode::InvalidArgument, first + " has " + std::to_string(bytes) +
                                                 " bytes but " + second + " has " +
                                                 std::to_string(other) + "; they must be equal");
}

// Of a call that says that they are. The buffer of rank `me` is of the right size.
template <typename Buffers>
Status check_equal(const std::string& argument, const Buffers& buffers, size_t me,
                   const CallOptions& options) {
  for (size_t r = 0; options.equal_blocks && r < buffers.size(); ++r) {
    if (buffers[r].bytes == buffers[me].bytes) continue;
    const auto named = [&](size_t at) { return argument + "[" + std::to_string(at) + "] has "; };
    return Status(StatusCode::InvalidArgument, named(r) + std::to_string(buffers[r].bytes) +
                                                   " bytes, and " + named(me) +
                                                   std::to_string(buffers[me].bytes) +
                                                   "; make them equal, or do not say that all are");
  }
  return Status();
}

const std::byte* bytes_of(const void* data) { return static_cast<const std::byte*>(data); }
std::byte* bytes_of(void* data) { return static_cast<std::byte*>(data); }

}  // namespace

// --- checks --------------------------------------------------------------------------------------

Status Communicator::check_root(int root) const {
  if (root >= 0 && root < size()) return Status();
  return Status(StatusCode::InvalidArgument,
                "root=" + std::to_string(root) +
                    " is not a rank of this group; give one from 0 to " +
                    std::to_string(size() - 1));
}

Status Communicator::check_list(const char* argument, size_t length) const {
  if (length == static_cast<size_t>(size())) return Status();
  return Status(StatusCode::InvalidArgument,
                std::string(argument) + " has " + std::to_string(length) +
                    " buffers; this group needs one per rank, " + std::to_string(size()));
}

Status Communicator::check_reduction(DType dtype, ReduceOp op) const {
  if (reduction_supported(dtype, op)) return Status();
  return Status(StatusCode::Unsupported, std::string("op=") + reduce_op_name(op) +
                                             " is not defined for dtype=" + dtype_name(dtype) +
                                             "; choose another op or convert the tensor");
}

// An average ends with a division by the number of ranks.
Reduction Communicator::reduction(DType dtype, ReduceOp op) const {
  return {dtype, op, op == ReduceOp::Avg ? static_cast<uint32_t>(size()) : 1};
}

// --- the way in ----------------------------------------------------------------------------------

// Mostly the one that the same collective had before.
const Plan& Communicator::plan_for(Collective collective, Algorithm algorithm, int root) {
  auto& newest = newest_plans_[static_cast<size_t>(collective)];
  const auto fits = [&](const RootedPlan& rooted) {
    return rooted.plan.collective == collective && rooted.plan.algorithm == algorithm &&
           rooted.root == root;
  };
  const RootedPlan* rooted = newest.load(std::memory_order_acquire);
  if (rooted != nullptr && fits(*rooted)) return rooted->plan;
  std::lock_guard<std::mutex> lock(plans_mutex_);
  auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const auto& known) { return fits(*known); });
  if (found == plans_.end()) {
    Plan plan = make_plan(collective, algorithm, static_cast<uint16_t>(rank()), islands_,
                          static_cast<uint16_t>(root));
    found = plans_.insert(found, std::make_unique<const RootedPlan>(root, std::move(plan)));
  }
  newest.store(found->get(), std::memory_order_release);
  return (*found)->plan;
}

std::unique_ptr<CollectiveOp> Communicator::begin(Collective collective, Algorithm algorithm,
                                                  int root) {
  auto op = group_->blank();
  op->operation.plan = &plan_for(collective, algorithm, root);
  op->operation.root = static_cast<uint16_t>(root);
  op->operation.grain = kGrainBytes;
  op->operation.reduction = kNoReduction;
  op->operation.contiguous = true;
  op->operation.bytes = 0;
  op->operation.input = nullptr;
  op->operation.output = nullptr;
  op->operation.block_bytes.clear();
  op->operation.equal_blocks = false;
  return op;
}

Result<WorkPtr> Communicator::submit(std::unique_ptr<CollectiveOp> op, const CallOptions& options) {
  auto work = works_.make();
  op->operation.also_equal = options.also_equal;
  op->operation.signature = signature_of(op->operation);
  op->work = work;
  op->started_ns = context_.clock.now_ns();
  op->deadline_ns = deadline_ns(op->started_ns, options);
  const bool is_short = op->operation.total_bytes() <= kShortBytes;
  RDMACOLL_RETURN_IF_ERROR(group_->submit(std::move(op)));
  context_.progress.notify(
      {.short_work = is_short ? work.get() : nullptr, .caller_waits = options.waits});
  return work;
}

Result<WorkPtr> Communicator::start_contiguous(Collective collective, const void* input,
                                               void* output, uint64_t bytes, Reduction reduction,
                                               int root, const CallOptions& options) {
  auto op = begin(collective, algorithm_for(collective, bytes), root);
  Operation& operation = op->operation;
  operation.bytes = bytes;
  operation.input = bytes_of(input);
  operation.output = bytes_of(output);
  operation.reduction = reduction;
  return submit(std::move(op), options);
}

// Makes the operation scattered, with no block anywhere yet.
static Operation& scatter_blocks(CollectiveOp& op) {
  Operation& operation = op.operation;
  operation.contiguous = false;
  operation.inputs.assign(operation.plan->blocks, nullptr);
  operation.outputs.assign(operation.plan->blocks, nullptr);
  operation.block_bytes.assign(operation.plan->blocks, 0);
  return operation;
}

// Ranks that know different sizes cannot choose by them.
std::unique_ptr<CollectiveOp> Communicator::begin_blocks(Collective collective,
                                                         uint64_t block_bytes, int root,
                                                         const CallOptions& options) {
  const uint64_t all_bytes = block_bytes * static_cast<uint64_t>(size());
  auto op = begin(collective,
                  options.equal_blocks ? algorithm_for(collective, all_bytes) : kOfAnySizes, root);
  Operation& operation = scatter_blocks(*op);
  operation.equal_blocks = options.equal_blocks;
  if (options.equal_blocks) std::ranges::fill(operation.block_bytes, block_bytes);
  return op;
}

// --- contiguous ----------------------------------------------------------------------------------

Result<WorkPtr> Communicator::all_reduce(const void* input, void* output, uint64_t count,
                                         DType dtype, ReduceOp op, const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_reduction(dtype, op));
  return start_contiguous(Collective::AllReduce, input, output, count * dtype_bytes(dtype),
                          reduction(dtype, op), 0, options);
}

Result<WorkPtr> Communicator::reduce(const void* input, void* output, uint64_t count, DType dtype,
                                     ReduceOp op, int root, const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_root(root));
  RDMACOLL_RETURN_IF_ERROR(check_reduction(dtype, op));
  return start_contiguous(Collective::Reduce, input, output, count * dtype_bytes(dtype),
                          reduction(dtype, op), root, options);
}

Result<WorkPtr> Communicator::broadcast(void* data, uint64_t bytes, int root,
                                        const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_root(root));
  return start_contiguous(Collective::Broadcast, data, data, bytes, kNoReduction, root, options);
}

Result<WorkPtr> Communicator::barrier(const CallOptions& options) {
  return start_contiguous(Collective::Barrier, nullptr, nullptr, 0, kNoReduction, 0, options);
}

// --- scattered -----------------------------------------------------------------------------------

Result<WorkPtr> Communicator::all_gather(ConstBuffer input, std::span<const MutableBuffer> outputs,
                                         const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_list("outputs", outputs.size()));
  const auto me = static_cast<size_t>(rank());
  if (outputs[me].bytes != input.bytes) {
    return sizes_differ("input", input.bytes, "outputs[" + std::to_string(me) + "]",
                        outputs[me].bytes);
  }
  const Algorithm algorithm = algorithm_for(Collective::AllGather, total_bytes(outputs));
  auto op = begin(Collective::AllGather, algorithm, 0);
  Operation& operation = scatter_blocks(*op);
  for (size_t b = 0; b < outputs.size(); ++b) {
    const size_t r = rank_of(*operation.plan, b);
    operation.outputs[b] = bytes_of(outputs[r].data);
    operation.block_bytes[b] = outputs[r].bytes;
    if (r == me) operation.inputs[b] = bytes_of(input.data);
  }
  return submit(std::move(op), options);
}

Result<WorkPtr> Communicator::reduce_scatter(std::span<const ConstBuffer> inputs,
                                             MutableBuffer output, DType dtype, ReduceOp reduce_op,
                                             const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_list("inputs", inputs.size()));
  RDMACOLL_RETURN_IF_ERROR(check_reduction(dtype, reduce_op));
  const auto me = static_cast<size_t>(rank());
  if (inputs[me].bytes != output.bytes) {
    return sizes_differ("output", output.bytes, "inputs[" + std::to_string(me) + "]",
                        inputs[me].bytes);
  }
  const Algorithm algorithm = algorithm_for(Collective::ReduceScatter, total_bytes(inputs));
  auto op = begin(Collective::ReduceScatter, algorithm, 0);
  Operation& operation = scatter_blocks(*op);
  for (size_t b = 0; b < inputs.size(); ++b) {
    const size_t r = rank_of(*operation.plan, b);
    operation.inputs[b] = bytes_of(inputs[r].data);
    operation.block_bytes[b] = inputs[r].bytes;
    if (r == me) operation.outputs[b] = bytes_of(output.data);
  }
  operation.reduction = reduction(dtype, reduce_op);
  return submit(std::move(op), options);
}

Result<WorkPtr> Communicator::all_to_all(std::span<const ConstBuffer> inputs,
                                         std::span<const MutableBuffer> outputs,
                                         const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_list("inputs", inputs.size()));
  RDMACOLL_RETURN_IF_ERROR(check_list("outputs", outputs.size()));
  const auto me = static_cast<size_t>(rank());
  if (inputs[me].bytes != outputs[me].bytes) {
    return sizes_differ("inputs[" + std::to_string(me) + "]", inputs[me].bytes,
                        "outputs[" + std::to_string(me) + "]", outputs[me].bytes);
  }
  RDMACOLL_RETURN_IF_ERROR(check_equal("inputs", inputs, me, options));
  RDMACOLL_RETURN_IF_ERROR(check_equal("outputs", outputs, me, options));
  auto op = begin_blocks(Collective::AllToAll, inputs[me].bytes, 0, options);
  Operation& operation = op->operation;
  for (size_t r = 0; r < inputs.size(); ++r) {
    operation.inputs[r] = bytes_of(inputs[r].data);
    operation.block_bytes[r] = inputs[r].bytes;
    operation.outputs[inputs.size() + r] = bytes_of(outputs[r].data);
    operation.block_bytes[inputs.size() + r] = outputs[r].bytes;
  }
  return submit(std::move(op), options);
}

Result<WorkPtr> Communicator::gather(ConstBuffer input, std::span<const MutableBuffer> outputs,
                                     int root, const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_root(root));
  const auto me = static_cast<size_t>(rank());
  if (rank() == root) {
    RDMACOLL_RETURN_IF_ERROR(check_list("outputs", outputs.size()));
    if (outputs[me].bytes != input.bytes) {
      return sizes_differ("input", input.bytes, "outputs[" + std::to_string(me) + "]",
                          outputs[me].bytes);
    }
    RDMACOLL_RETURN_IF_ERROR(check_equal("outputs", outputs, me, options));
  }
  auto op = begin_blocks(Collective::Gather, input.bytes, root, options);
  Operation& operation = op->operation;
  for (size_t b = 0; b < operation.plan->blocks; ++b) {
    const size_t r = rank_of(*operation.plan, b);
    if (r == me) {
      operation.inputs[b] = bytes_of(input.data);
      operation.block_bytes[b] = input.bytes;
    }
    if (rank() != root) continue;
    operation.outputs[b] = bytes_of(outputs[r].data);
    operation.block_bytes[b] = outputs[r].bytes;
  }
  return submit(std::move(op), options);
}

Result<WorkPtr> Communicator::scatter(std::span<const ConstBuffer> inputs, MutableBuffer output,
                                      int root, const CallOptions& options) {
  RDMACOLL_RETURN_IF_ERROR(check_root(root));
  const auto me = static_cast<size_t>(rank());
  if (rank() == root) {
    RDMACOLL_RETURN_IF_ERROR(check_list("inputs", inputs.size()));
    if (inputs[me].bytes != output.bytes) {
      return sizes_differ("output", output.bytes, "inputs[" + std::to_string(me) + "]",
                          inputs[me].bytes);
    }
    RDMACOLL_RETURN_IF_ERROR(check_equal("inputs", inputs, me, options));
  }
  auto op = begin_blocks(Collective::Scatter, output.bytes, root, options);
  Operation& operation = op->operation;
  for (size_t b = 0; b < operation.plan->blocks; ++b) {
    const size_t r = rank_of(*operation.plan, b);
    if (r == me) {
      operation.outputs[b] = bytes_of(output.data);
      operation.block_bytes[b] = output.bytes;
    }
    if (rank() != root) continue;
    operation.inputs[b] = bytes_of(inputs[r].data);
    operation.block_bytes[b] = inputs[r].bytes;
  }
  return submit(std::move(op), options);
}

}  // namespace rdmacoll
