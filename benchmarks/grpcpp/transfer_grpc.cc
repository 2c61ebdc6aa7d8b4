// The same transfer by gRPC in C++, beside csrc/remote: one unary call of bytes, without limits and
// without code made by protoc, over TCP and, in one host, over a Unix socket. The request refers to
// the sender's tensor and is not copied by it; what has come is copied into the receiver's.
//   transfer_grpc [between PID/ADDRESS PID/ADDRESS] [reads] [rounds, default 15 [bytes ...]]
// between: in the networks of these processes, of which they are addresses (network_transfer.py).
// reads: the receiver reads the tensor before it answers.
// Floor: benchmarks. Thread: a process's main one; gRPC's own, which copy at the receiver.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/transfer/pairs.h"
#include "benchmarks/transfer/remote_way.h"

namespace {

using namespace rdmacoll::bench;

constexpr auto kMethod = "/rdmacoll.Transfer/Put";

class Receiver final : public grpc::CallbackGenericService {
 public:
  explicit Receiver(const Place& place) : place_(place) {}
  std::vector<std::byte> tensor;

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Call(place_, tensor);
  }

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(const Place& place, std::vector<std::byte>& tensor) : place_(place), tensor_(tensor) {
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      std::vector<grpc::Slice> slices;
      if (!ok || !message_.Dump(&slices).ok() || message_.Length() > tensor_.size()) {
        return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no message that fits"));
      }
      size_t at = 0;
      for (const grpc::Slice& slice : slices) {
        std::memcpy(tensor_.data() + at, slice.begin(), slice.size());
        at += slice.size();
      }
      use(place_, tensor_.data(), at);
      StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    const Place place_;
    std::vector<std::byte>& tensor_;
    grpc::ByteBuffer message_;
    grpc::Slice nothing_;
    grpc::ByteBuffer reply_{&nothing_, 1};
  };

  const Place place_;
};

class GrpcWay final : public Way {
 public:
  GrpcWay(const Place& place, bool over_unix) : sends_(place.sends), receiver_(place) {
    rdmacoll::MeetingBootstrap meeting(*place.meeting, place.rank(), 2);
    const rdmacoll::SteadyClock clock;
    const std::string mine = sends_      ? std::string()
                             : over_unix ? listen_in_the_host()
                                         : listen(place.host.address);
    const auto told = needed(meeting.all_gather(mine, rdmacoll::Deadline::after_ms(clock, 60'000)));
    if (sends_) dial(told[1]);
  }
  ~GrpcWay() override {
    if (server_ != nullptr) server_->Shutdown();
  }

  void prepare(uint64_t bytes) override { held().assign(bytes, std::byte{1}); }
  void send() override {
    const grpc::Slice whole(source_.data(), source_.size(), grpc::Slice::STATIC_SLICE);
    const grpc::ByteBuffer request(&whole, 1);
    grpc::ClientContext context;
    const auto call = stub_->PrepareUnaryCall(&context, kMethod, request, &queue_);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !status.ok()) give_up("gRPC: " + status.error_message());
  }
  std::byte* tensor() override { return held().data(); }

 private:
  std::vector<std::byte>& held() { return sends_ ? source_ : receiver_.tensor; }

  // Where.
  std::string listen_in_the_host() {
    const std::string name = "unix-abstract:rdmacoll-transfer-" + std::to_string(getpid());
    begin(name);
    return name;
  }
  std::string listen(const std::string& address) {
    return address + ":" + std::to_string(begin(address + ":0"));
  }
  // The port, where there is one.
  int begin(const std::string& at) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.AddListeningPort(at, grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&receiver_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) give_up("gRPC cannot listen");
    return port;
  }
  void dial(const std::string& where) {
    grpc::ChannelArguments no_limits;
    no_limits.SetMaxReceiveMessageSize(-1);
    no_limits.SetMaxSendMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(where, grpc::InsecureChannelCredentials(), no_limits));
  }

  const bool sends_;
  std::vector<std::byte> source_;
  Receiver receiver_;
  std::unique_ptr<grpc::Server> server_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto ours = [](const Place& place) { return std::make_unique<RemoteWay>(place); };
  return compare(
      {
          {"rdma", ours},
          {"rdma again", ours},
          {"grpc, tcp", [](const Place& place) { return std::make_unique<GrpcWay>(place, false); }},
          {"grpc, unix", [](const Place& place) { return std::make_unique<GrpcWay>(place, true); },
           true},
      },
      argc, argv);
}
