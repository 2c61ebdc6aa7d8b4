// ps_face. Floor: torch_ext/ps. Thread: see ps_face.h.
#include "torch_ext/ps/ps_face.h"

#include <algorithm>
#include <memory>
#include <span>

#include "torch_ext/base/interrupt.h"
#include "torch_ext/base/milliseconds.h"
#include "torch_ext/base/process_life.h"
#include "torch_ext/base/take_out.h"
#include "torch_ext/remote/remote_errors.h"
#include "torch_ext/tensors/validate.h"

namespace rdmacoll::torch_ext {
namespace {

std::span<const float> floats(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

std::span<const uint64_t> ids_of(const at::Tensor& ids) {
  return {reinterpret_cast<const uint64_t*>(ids.const_data_ptr<int64_t>()),
          static_cast<size_t>(ids.numel())};
}

// What Python knows of the servers. Its functions may raise: then it is not known now.
class PyDirectory final : public ps::Directory {
 public:
  PyDirectory(pybind11::function newest_map, pybind11::function find_server)
      : newest_map_(std::move(newest_map)), find_server_(std::move(find_server)) {}
  ~PyDirectory() override {
    const pybind11::gil_scoped_acquire acquired;
    newest_map_ = {};
    find_server_ = {};
  }

  Result<ps::BucketMap> map() override {
    return call([&] { return ps::BucketMap::parse(newest_map_().cast<std::string>()); });
  }
  Result<Entry> server(ps::ServerId server) override {
    return call([&]() -> Result<Entry> {
      const auto [address, start] = find_server_(server).cast<std::pair<std::string, uint64_t>>();
      return Entry{address, start};
    });
  }

 private:
  template <typename Call>
  auto call(Call call) -> decltype(call()) {
    if (ProcessLife::instance().leaving()) {
      return Status(StatusCode::System, "the job's Store: this process ends");
    }
    const pybind11::gil_scoped_acquire acquired;
    try {
      return call();
    } catch (const pybind11::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) PythonInterrupt::keep(std::current_exception());
      return Status(StatusCode::System, std::string("the job's Store: ") + error.what());
    }
  }

  pybind11::function newest_map_;
  pybind11::function find_server_;
};

}  // namespace

// --- the server ----------------------------------------------------------------------------------

PsServer::PsServer(RemoteFacePtr face, const std::string& own_address, ps::ServerId number,
                   uint32_t replicas, const std::string& map, uint64_t memory_bytes,
                   const std::vector<uint32_t>& dropped, bool arrives)
    : face_(std::move(face)),
      host_(take_or_raise(ps::ServerHost::make(face_->remote(), own_address, number, replicas,
                                               take_or_raise(ps::BucketMap::parse(map)),
                                               memory_bytes, dropped))) {
  if (arrives) host_->arrive();
}

void PsServer::call(ps::ServerId server, const std::string& address, double timeout_s) {
  raise_if_failed(without_gil([&](const InterruptCheck& interrupt) {
    return host_->call(server, address, milliseconds(timeout_s), interrupt);
  }));
}

void PsServer::wait_wish(double timeout_s) const {
  const WithoutGil without;
  host_->wait_wish(milliseconds(timeout_s));
}

void PsServer::adopt(const std::string& map, int64_t known_ns) {
  host_->adopt(take_or_raise(ps::BucketMap::parse(map)), known_ns);
}

void PsServer::drop(const std::vector<uint32_t>& tables, double timeout_s) {
  raise_if_failed(without_gil(
      [&](const InterruptCheck&) { return host_->drop(tables, milliseconds(timeout_s)); }));
}

bool PsServer::hear(double timeout_s) {
  const Status status = without_gil([&](const InterruptCheck& interrupt) {
    return host_->hear(milliseconds(timeout_s), interrupt);
  });
  if (status.code() == StatusCode::Timeout) return false;
  raise_if_failed(status);
  return true;
}

void PsServer::serve() {
  raise_if_failed(
      without_gil([&](const InterruptCheck& interrupt) { return host_->serve(interrupt); }));
}

std::map<std::string, uint64_t> PsServer::stats() const {
  const ps::ServerStats stats = host_->stats();
  return {{"tables", stats.tables},   {"rows", stats.rows},   {"elements", stats.elements},
          {"buckets", stats.buckets}, {"alone", stats.alone}, {"without_room", stats.without_room},
          {"pushes", stats.pushes},   {"pulls", stats.pulls}, {"memory_bytes", stats.memory_bytes}};
}

// --- the worker ----------------------------------------------------------------------------------

PsBatch::~PsBatch() {
  if (!batch_->is_done()) client_->keep(batch_, std::move(tensor_));
}

// Who has the client's lock may wait for the GIL.
bool PsBatch::done() const {
  ps::Client& client = client_->host().client();
  const WithoutGil without;
  return client.is_done(batch_);
}

void PsBatch::wait(double timeout_s) const {
  raise_if_failed(without_gil([&](const InterruptCheck& interrupt) {
    ps::ClientHost& host = client_->host();
    return host.client().wait(batch_, host.limit(milliseconds(timeout_s), interrupt));
  }));
}

PsClientPtr PsClient::make(RemoteFacePtr face, const std::string& own_address,
                           pybind11::function newest_map, pybind11::function find_server,
                           double timeout_s) {
  auto directory = std::make_unique<PyDirectory>(std::move(newest_map), std::move(find_server));
  auto host = take_or_raise(without_gil([&](const InterruptCheck& interrupt) {
    return ps::ClientHost::make(face->remote(), own_address, std::move(directory),
                                milliseconds(timeout_s), interrupt);
  }));
  return std::make_shared<PsClient>(std::move(face), std::move(host));
}

PsClient::~PsClient() {
  if (inherited()) static_cast<void>(host_.release());
}

ps::ClientHost& PsClient::host() const {
  face_->remote();  // throws in a forked child
  return *host_;
}

void PsClient::keep(ps::BatchPtr batch, at::Tensor tensor) {
  kept_.emplace_back(std::move(batch), std::move(tensor));
}

void PsClient::create(uint32_t table, const std::string& spec) const {
  const ps::TableSpec parsed = take_or_raise(ps::parse_table_spec(spec));
  raise_if_failed(
      without_gil([&](const InterruptCheck&) { return host().client().create(table, parsed); }));
}

template <typename Begin>
std::unique_ptr<PsBatch> PsClient::start(const at::Tensor& tensor, double timeout_s, Begin begin) {
  take_out(kept_, [](const auto& kept) { return kept.first->is_done(); });
  ps::BatchPtr batch;
  const Status begun = without_gil([&](const InterruptCheck& interrupt) {
    batch = begin(host().client(), host().limit(milliseconds(timeout_s), interrupt));
    return batch->is_done() ? batch->status() : Status();
  });
  auto made = std::make_unique<PsBatch>(shared_from_this(), std::move(batch), tensor);
  raise_if_failed(begun);
  return made;
}

at::Tensor PsClient::lend(uint64_t bytes, double timeout_s) const {
  auto loan = take_or_raise(without_gil([&](const InterruptCheck& interrupt) {
    return host().lend(std::max<uint64_t>(bytes, 1),
                       host().limit(milliseconds(timeout_s), interrupt));
  }));
  std::byte* const data = loan->memory->data();
  return bytes_at(data, bytes, std::const_pointer_cast<ps::Loan>(std::move(loan)));
}

std::unique_ptr<PsBatch> PsClient::assign(uint32_t table, const at::Tensor& values,
                                          double timeout_s) {
  Check("push").dense(values, "values");
  return start(values, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.push_range(table, 0, floats(values), ps::PushAs::Assigned, limit);
  });
}

std::unique_ptr<PsBatch> PsClient::push(uint32_t table, uint64_t first, const at::Tensor& values,
                                        const PsRates& rates, double timeout_s) {
  Check("push").dense(values, "values");
  return start(values, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.push_range(table, first, floats(values), ps::PushAs::Gradient, limit, {},
                             {rates.first, rates.second});
  });
}

std::unique_ptr<PsBatch> PsClient::push_step(uint32_t table, const at::Tensor& gradient,
                                             uint32_t rank, uint32_t step, uint32_t generation,
                                             const PsRates& rates, double timeout_s) {
  Check("push").dense(gradient, "gradient");
  return start(gradient, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.push_range(table, 0, floats(gradient), ps::PushAs::Gradient, limit,
                             {rank, step, generation}, {rates.first, rates.second});
  });
}

std::unique_ptr<PsBatch> PsClient::push_rows(uint32_t table, const at::Tensor& ids,
                                             const at::Tensor& values, const PsRates& rates,
                                             double timeout_s) {
  Check("push").dense(values, "values");
  return start(values, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.push_rows(table, ids_of(ids), values.const_data_ptr<float>(),
                            ps::PushAs::Gradient, limit, {rates.first, rates.second});
  });
}

std::unique_ptr<PsBatch> PsClient::pull(uint32_t table, uint64_t first, const at::Tensor& out,
                                        uint32_t step, double timeout_s) {
  Check("pull").written(out, "out");
  return start(out, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.pull_range(
        table, first, {out.data_ptr<float>(), static_cast<size_t>(out.numel())}, limit, step);
  });
}

std::unique_ptr<PsBatch> PsClient::begin_generation(uint32_t table, uint32_t generation,
                                                    uint32_t workers, uint32_t step,
                                                    double timeout_s) {
  return start({}, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.begin_generation(table, {generation, workers}, step, limit);
  });
}

std::vector<uint32_t> PsClient::pull_steps(uint32_t table, uint32_t workers,
                                           double timeout_s) const {
  return take_or_raise(without_gil([&](const InterruptCheck& interrupt) {
    return host().client().pull_steps(table, workers,
                                      host().limit(milliseconds(timeout_s), interrupt));
  }));
}

ps::Rebalanced PsClient::rebalance(double over_s, double timeout_s) const {
  return take_or_raise(without_gil([&](const InterruptCheck& interrupt) {
    return host().client().rebalance(milliseconds(over_s),
                                     host().limit(milliseconds(timeout_s), interrupt));
  }));
}

std::unique_ptr<PsBatch> PsClient::pull_rows(uint32_t table, const at::Tensor& ids,
                                             const at::Tensor& out, double timeout_s) {
  Check("pull").written(out, "out");
  return start(out, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.pull_rows(table, ids_of(ids), out.data_ptr<float>(), limit);
  });
}

// --- snapshots -----------------------------------------------------------------------------------

std::unique_ptr<PsBatch> PsClient::save_shard(uint32_t table, uint64_t shard, const at::Tensor& out,
                                              double timeout_s) {
  return start(out, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.save_shard(table, shard,
                             {out.data_ptr<float>(), static_cast<size_t>(out.numel())}, limit);
  });
}

std::unique_ptr<PsBatch> PsClient::restore_shard(uint32_t table, uint64_t shard,
                                                 const at::Tensor& saved, double timeout_s) {
  return start(saved, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.restore_shard(table, shard, floats(saved), limit);
  });
}

std::unique_ptr<PsBatch> PsClient::list_rows(uint32_t table, uint32_t bucket, uint64_t from,
                                             const at::Tensor& out, double timeout_s) {
  return start(out, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    auto* const numbers = reinterpret_cast<uint64_t*>(out.data_ptr<int64_t>());
    return client.list_rows(table, bucket, from, {numbers, static_cast<size_t>(out.numel())},
                            limit);
  });
}

std::unique_ptr<PsBatch> PsClient::save_rows(uint32_t table, const at::Tensor& ids,
                                             const at::Tensor& out, double timeout_s) {
  return start(out, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.save_rows(table, ids_of(ids), out.data_ptr<float>(), limit);
  });
}

std::unique_ptr<PsBatch> PsClient::restore_rows(uint32_t table, const at::Tensor& ids,
                                                const at::Tensor& saved, double timeout_s) {
  return start(saved, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.push_rows(table, ids_of(ids), saved.const_data_ptr<float>(), ps::PushAs::Restored,
                            limit);
  });
}

std::unique_ptr<PsBatch> PsClient::empty_rows(uint32_t table, double timeout_s) {
  return start({}, timeout_s, [&](ps::Client& client, const ps::Limit& limit) {
    return client.empty_rows(table, limit);
  });
}

}  // namespace rdmacoll::torch_ext
