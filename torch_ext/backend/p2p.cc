// Point to point. Floor: torch_ext/backend.
#include "torch_ext/backend/backend.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {

using c10d::OpType;

RdmaBackend::WorkRef RdmaBackend::send(Tensors& tensors, int destination, int tag) {
  const Check check("send");
  const at::Tensor& tensor = check.single(tensors, "tensor list");
  check.dense(tensor, "tensor");
  check.peer(destination, size_, "destination");
  check.tag(tag);
  Operands operands;
  const ConstBuffer data = operands.input(tensor);
  return launch({.type = OpType::SEND, .title = "rdma:send", .collective = false},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.send(data, destination, tag, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::recv(Tensors& tensors, int source, int tag) {
  const Check check("recv");
  const at::Tensor& tensor = check.single(tensors, "tensor list");
  check.written(tensor, "tensor");
  check.peer(source, size_, "source");
  check.tag(tag);
  Operands operands;
  const MutableBuffer data = operands.output(tensor);
  return launch({.type = OpType::RECV, .title = "rdma:recv", .collective = false},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.recv(data, source, tag, options);
                });
}

RdmaBackend::WorkRef RdmaBackend::recvAnysource(Tensors& tensors, int tag) {
  const Check check("recv");
  const at::Tensor& tensor = check.single(tensors, "tensor list");
  check.written(tensor, "tensor");
  check.tag(tag);
  Operands operands;
  const MutableBuffer data = operands.output(tensor);
  return launch({.type = OpType::RECVANYSOURCE, .title = "rdma:recvAnySource", .collective = false},
                std::move(operands), [&](Communicator& communicator, const CallOptions& options) {
                  return communicator.recv(data, kAnySource, tag, options);
                });
}

}  // namespace rdmacoll::torch_ext
