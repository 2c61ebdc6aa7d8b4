// Floor: benchmarks. Thread: a process's main one.
#include "benchmarks/transfer/remote_way.h"

namespace rdmacoll::bench {

RemoteSide::RemoteSide(const Place& place) : place_(place) {
  endpoint_ = needed(Endpoint::open(needed(Config::from_environment())));
  MeetingBootstrap bootstrap(*place.meeting, place.rank(), 2);
  communicator_ = needed(endpoint_->create_communicator(place.rank(), 2, bootstrap, kTimeoutMs));
  const EngineContext& context = communicator_->context();
  remote_ =
      std::make_unique<Remote>(RemoteContext{context.transports, context.sessions, context.progress,
                                             context.clock, communicator_->keeps()});
}

RemoteMemoryPtr RemoteSide::memory(uint64_t bytes) {
  return needed(remote_->allocate(bytes, Others::Write));
}

void RemoteSide::expose(const std::string& name, const RemoteMemoryPtr& memory) {
  need(remote_->expose({.name = name, .bytes = memory->bytes(), .is_writable = true}, memory, 0));
}

void RemoteSide::revoke(const std::string& name) {
  need(remote_->revoke(name, kTimeoutMs, {}).status());
}

OpenedPtr RemoteSide::open(const std::string& name) {
  const int other = 1 - place_.rank();
  return needed(
      remote_->open(*communicator_->address_of(other), "the other", name, kTimeoutMs, {}));
}

void Channel::make(uint64_t bytes) {
  if (!mine_.empty()) side_.revoke(mine_);
  ++made_;
  const std::string number = std::to_string(made_);
  mine_ = (sends() ? "answers " : "data ") + number;
  memory_ = side_.memory(sends() ? 1 : bytes);
  side_.expose(mine_, memory_);
  there_ = side_.open((sends() ? "data " : "answers ") + number);
}

void RemoteWay::prepare(uint64_t bytes) {
  channel_.make(bytes);
  if (channel_.sends()) source_ = channel_.side().memory(bytes);
  bytes_ = bytes;
  number_ = 0;
}

void RemoteWay::send() {
  ++number_;
  channel_.side().wait(channel_.write(0, source_->data(), bytes_, number_));
  channel_.await(number_);
}

void RemoteWay::serve(int count) {
  for (int i = 0; i < count; ++i) {
    channel_.await(++number_);
    use(channel_.side().place(), channel_.data(), bytes_);
    channel_.answer(number_);
  }
}

}  // namespace rdmacoll::bench
