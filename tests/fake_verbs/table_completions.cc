// The functions of the table: completion channels and queues.
#include <algorithm>
#include <cerrno>

#include "tests/fake_verbs/misuse.h"
#include "tests/fake_verbs/network.h"
#include "tests/fake_verbs/table_parts.h"

namespace rdmacoll::fake {
namespace {

CompletionQueue& of(ibv_cq* queue) { return *static_cast<CompletionQueue*>(queue); }

ibv_comp_channel* create_comp_channel(ibv_context* context) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  auto made = std::make_unique<CompletionChannel>();
  made->context = context;
  made->fd = made->events.fd();
  made->refcnt = 0;
  ibv_comp_channel* const channel = made.get();
  network.registry.channels[channel] = std::move(made);
  return channel;
}

int destroy_comp_channel(ibv_comp_channel* channel) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  require(network.registry.channels.contains(channel), "a completion channel is destroyed twice");
  if (channel->refcnt > 0) return EBUSY;
  network.registry.channels.erase(channel);
  return 0;
}

ibv_cq* create_cq(ibv_context* context, int entries, void* user, ibv_comp_channel* channel,
                  int vector) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  const int most = network.registry.device_of(context).spec.limits.max_cqe;
  if (entries < 1 || entries > most || vector < 0 || vector >= context->num_comp_vectors) {
    errno = EINVAL;
    return nullptr;
  }
  auto made = std::make_unique<CompletionQueue>();
  static_cast<ibv_cq&>(*made) = {};
  made->context = context;
  made->channel = channel;
  made->cq_context = user;
  made->cqe = entries;  // many devices give more
  if (channel != nullptr) ++channel->refcnt;
  network.registry.completion_queues.push_back(std::move(made));
  return network.registry.completion_queues.back().get();
}

int resize_cq(ibv_cq* queue, int entries) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  if (entries > network.registry.device_of(queue->context).spec.limits.max_cqe) return EINVAL;
  return of(queue).resize(entries);
}

int destroy_cq(ibv_cq* queue) {
  FakeNetwork& network = FakeNetwork::current();
  const Wire::Hold hold(network.wire);
  CompletionQueue& gone = of(queue);
  require(!gone.destroyed, "a completion queue is destroyed twice");
  if (gone.queue_pairs > 0) return EBUSY;
  if (auto* const channel = static_cast<CompletionChannel*>(gone.channel)) {
    channel->events.forget([&](const CompletionQueue* of_event) { return of_event == &gone; });
    --channel->refcnt;
  }
  require(gone.events_taken == gone.events_acked,
          "a completion queue with unacknowledged events is destroyed: a device waits for ever");
  gone.destroyed = true;
  return 0;
}

int get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** user) {
  CompletionQueue* told = nullptr;
  if (!static_cast<CompletionChannel*>(channel)->events.take(&told)) return -1;
  ++told->events_taken;
  *queue = told;
  *user = told->cq_context;
  return 0;
}

}  // namespace

void fill_completions(VerbsTable* table) {
  table->create_comp_channel = create_comp_channel;
  table->destroy_comp_channel = destroy_comp_channel;
  table->create_cq = create_cq;
  table->resize_cq = resize_cq;
  table->destroy_cq = destroy_cq;
  table->get_cq_event = get_cq_event;
  table->ack_cq_events = [](ibv_cq* queue, unsigned count) { of(queue).events_acked += count; };
  table->poll_cq = [](ibv_cq* queue, int entries, ibv_wc* completions) {
    return of(queue).poll(entries, completions);
  };
  table->req_notify_cq = [](ibv_cq* queue, int solicited_only) {
    return of(queue).notify(solicited_only != 0);
  };
}

}  // namespace rdmacoll::fake
