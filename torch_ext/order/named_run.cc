// NamedRun. Floor: torch_ext/order.
#include "torch_ext/order/named_run.h"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "csrc/base/check.h"
#include "torch_ext/order/adasum.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

using Tensors = std::vector<at::Tensor>;

c10d::ReduceOp reduce_op(NamedOp op) {
  switch (op) {
    case NamedOp::Average:  // the sum, which is divided at the end
    case NamedOp::Adasum:   // of one rank
    case NamedOp::Sum:
      return c10d::ReduceOp::SUM;
    case NamedOp::Min:
      return c10d::ReduceOp::MIN;
    case NamedOp::Max:
      return c10d::ReduceOp::MAX;
    case NamedOp::Product:
      return c10d::ReduceOp::PRODUCT;
  }
  RDMACOLL_CHECK(false);
}

// Integers are multiplied as doubles, and lose what is behind the point; floats of 16 bits as those
// of 32.
void scale(const at::Tensor& tensor, double factor) {
  if (factor == 1) return;
  const at::NoGradGuard no_grad;
  const at::ScalarType type = tensor.scalar_type();
  if (at::isReducedFloatingType(type)) {
    tensor.copy_(tensor.to(at::kFloat).mul_(factor));
  } else if (at::isIntegralType(type, true)) {
    tensor.copy_(tensor.to(at::kDouble).mul_(factor));
  } else {
    tensor.mul_(factor);
  }
}

double last_factor(const NamedRequest& request, int ranks) {
  return request.op == NamedOp::Average ? request.postscale / ranks : request.postscale;
}

std::vector<int64_t> with_rows(const at::Tensor& like, int64_t rows) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.at(0) = rows;
  return sizes;
}

// `tensor` cut along its first dimension.
Tensors cut_rows(const at::Tensor& tensor, const std::vector<int64_t>& rows) {
  Tensors parts;
  int64_t at = 0;
  for (const int64_t count : rows) {
    parts.push_back(tensor.narrow(0, at, count));
    at += count;
  }
  return parts;
}

at::ScalarType scalar_type(const std::string& name) {
  for (int type = 0; type < static_cast<int>(at::ScalarType::NumOptions); ++type) {
    if (name == c10::toString(static_cast<at::ScalarType>(type)))
      return static_cast<at::ScalarType>(type);
  }
  Check("allreduce").fail("dtype " + name + " is unknown here; run the same torch on all ranks");
}

Tensors zeros_of(const NamedRequest& request) {
  Tensors zeros;
  for (const TensorShape& shape : request.tensors) {
    zeros.push_back(at::zeros(shape.dims, scalar_type(shape.dtype)));
  }
  return zeros;
}

// What a rank that has joined adds are zeros.
Tensors tensors_of(const NamedRun& run) {
  return run.work != nullptr ? run.work->outputs() : zeros_of(run.agreed->request);
}

StartedRuns start_adasums(const RdmaBackend& backend, std::vector<NamedRun> runs) {
  std::vector<AdasumTensor> tensors;
  for (const NamedRun& run : runs) {
    const NamedRequest& request = run.agreed->request;
    for (at::Tensor& tensor : tensors_of(run)) {
      tensors.push_back({std::move(tensor), request.prescale, request.postscale});
    }
  }
  return start_adasum(backend, std::move(runs), std::move(tensors));
}

// Those of one dtype are one operation, which copies the short ones together.
StartedRuns start_all_reduces(RdmaBackend& backend, std::vector<NamedRun> runs) {
  StartedRuns started{std::move(runs), {}, {}, {}};
  std::map<at::ScalarType, Tensors> by_type;
  for (const NamedRun& run : started.runs) {
    const NamedRequest& request = run.agreed->request;
    const Tensors tensors = tensors_of(run);
    for (const at::Tensor& tensor : tensors) {
      scale(tensor, request.prescale);
      by_type[tensor.scalar_type()].push_back(tensor);
    }
    const double factor = last_factor(request, backend.getSize());
    if (run.work == nullptr || factor == 1) continue;
    started.finish.push_back([tensors, factor] {
      for (const at::Tensor& tensor : tensors) scale(tensor, factor);
    });
  }
  for (auto& [type, tensors] : by_type) {
    c10d::AllreduceCoalescedOptions options;
    options.reduceOp = reduce_op(started.runs.front().agreed->request.op);
    started.works.push_back(backend.allreduce_coalesced(tensors, options));
  }
  return started;
}

StartedRuns start_all_gather(RdmaBackend& backend, NamedRun run) {
  StartedRuns started{{run}, {}, {}, {}};
  const Tensors& inputs = run.work->inputs();
  Tensors outputs;
  std::vector<int64_t> all_rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<int64_t> rows;
    for (const auto& of_rank : run.agreed->rows) rows.push_back(of_rank.at(i));
    const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
    outputs.push_back(at::empty(with_rows(inputs[i], all), inputs[i].options()));
    RdmaBackend::TensorLists to{cut_rows(outputs.back(), rows)};
    all_rows.insert(all_rows.end(), rows.begin(), rows.end());
    Tensors from{inputs[i]};
    started.works.push_back(backend.allgather(to, from, {}));
  }
  run.work->set_rows(std::move(all_rows));
  run.work->set_outputs(std::move(outputs));
  return started;
}

StartedRuns start_broadcast(RdmaBackend& backend, NamedRun run) {
  StartedRuns started{{run}, {}, {}, {}};
  c10d::BroadcastOptions options;
  options.rootRank = run.agreed->request.root;
  for (const at::Tensor& tensor : run.work->outputs()) {
    Tensors one{tensor};
    started.works.push_back(backend.broadcast(one, options));
  }
  return started;
}

StartedRuns start_all_to_all(RdmaBackend& backend, NamedRun run) {
  StartedRuns started{{run}, {}, {}, {}};
  const auto me = static_cast<size_t>(backend.getRank());
  std::vector<int64_t> received;
  for (const auto& splits : run.agreed->rows) received.push_back(splits.at(me));
  at::Tensor input = run.work->inputs().at(0);
  const int64_t all = std::accumulate(received.begin(), received.end(), int64_t{0});
  at::Tensor output = at::empty(with_rows(input, all), input.options());
  std::vector<int64_t> sent = run.work->request().splits;
  started.works.push_back(backend.alltoall_base(output, input, received, sent, {}));
  run.work->set_rows(std::move(received));
  run.work->set_outputs({std::move(output)});
  return started;
}

// The first ranks get a row more, where rows do not come out even.
StartedRuns start_reduce_scatter(RdmaBackend& backend, NamedRun run) {
  StartedRuns started{{run}, {}, {}, {}};
  const NamedRequest& request = run.agreed->request;
  const int64_t ranks = backend.getSize();
  const double factor = last_factor(request, backend.getSize());
  Tensors outputs;
  for (const at::Tensor& input : run.work->inputs()) {
    std::vector<int64_t> rows;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      rows.push_back(input.size(0) / ranks + (rank < input.size(0) % ranks ? 1 : 0));
    }
    at::Tensor from = input;
    if (request.prescale != 1) scale(from = input.clone(), request.prescale);
    const int64_t own = rows[static_cast<size_t>(backend.getRank())];
    outputs.push_back(at::empty(with_rows(input, own), input.options()));
    Tensors to{outputs.back()};
    RdmaBackend::TensorLists parts{cut_rows(from, rows)};
    c10d::ReduceScatterOptions options;
    options.reduceOp = reduce_op(request.op);
    started.works.push_back(backend.reduce_scatter(to, parts, options));
    started.finish.push_back([output = outputs.back(), factor] { scale(output, factor); });
  }
  run.work->set_outputs(std::move(outputs));
  return started;
}

// All ranks have said that they are there, and what they submitted before has been started: behind
// that it ends.
StartedRuns start_barrier(RdmaBackend& backend, NamedRun run) {
  return {{std::move(run)}, {backend.barrier({})}, {}, {}};
}

}  // namespace

bool goes_with(const NamedRun& first, const NamedRun& second) {
  const NamedRequest& one = first.agreed->request;
  const NamedRequest& other = second.agreed->request;
  return one.kind == NamedKind::AllReduce && other.kind == NamedKind::AllReduce &&
         one.op == other.op;
}

StartedRuns start(RdmaBackend& backend, std::vector<NamedRun> runs) {
  switch (runs.front().agreed->request.kind) {
    case NamedKind::AllReduce:
      if (runs.front().agreed->request.op == NamedOp::Adasum && backend.getSize() > 1) {
        return start_adasums(backend, std::move(runs));
      }
      return start_all_reduces(backend, std::move(runs));
    case NamedKind::AllGather:
      return start_all_gather(backend, std::move(runs.front()));
    case NamedKind::Broadcast:
      return start_broadcast(backend, std::move(runs.front()));
    case NamedKind::AllToAll:
      return start_all_to_all(backend, std::move(runs.front()));
    case NamedKind::ReduceScatter:
      return start_reduce_scatter(backend, std::move(runs.front()));
    case NamedKind::Barrier:
      return start_barrier(backend, std::move(runs.front()));
  }
  RDMACOLL_CHECK(false);
}

}  // namespace rdmacoll::torch_ext
