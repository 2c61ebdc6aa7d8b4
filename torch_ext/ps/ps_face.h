// ps_face: the parameter server for Python, as rdmacoll/ps is made of it: tensors in the place of
// addresses, and batches that keep them.
// Floor: torch_ext/ps. Thread: any, with the GIL, which what waits gives up.
#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/ps/client/client_host.h"
#include "csrc/ps/server/server_host.h"
#include "torch_ext/remote/remote_face.h"

namespace rdmacoll::torch_ext {

// A server in this process.
class PsServer {
 public:
  // own_address: of this process; number: of the server; replicas: 2: tables are kept twice; map:
  // an encoded BucketMap; memory_bytes: what its tables may have; dropped: those that are no more;
  // arrives: it comes while the job runs, and gets its share of the buckets.
  PsServer(RemoteFacePtr face, const std::string& own_address, ps::ServerId number,
           uint32_t replicas, const std::string& map, uint64_t memory_bytes,
           const std::vector<uint32_t>& dropped, bool arrives);

  // Takes the next process that calls; false: none has in time.
  bool hear(double timeout_s);
  // Calls another server, for what that one is the backup of.
  void call(ps::ServerId server, const std::string& address, double timeout_s);
  void give_up(ps::ServerId server) { host_->give_up(server); }
  std::optional<ps::ServerHost::Wish> wish() const { return host_->wish(); }
  // Until there is one, or so long.
  void wait_wish(double timeout_s) const;
  // known_ns: when the map was asked for, by now_ns().
  void adopt(const std::string& map, int64_t known_ns);
  int64_t now_ns() const { return host_->now_ns(); }
  // Tables are no more; returns when their memory is free. Not in serve()'s thread.
  void drop(const std::vector<uint32_t>& tables, double timeout_s);
  // Answers the workers until stop(), which another thread calls.
  void serve();
  void stop() { host_->stop(); }
  std::map<std::string, uint64_t> stats() const;
  // Of each table, by its number, in the buckets of which this server is the primary.
  std::map<uint32_t, uint64_t> rows_of() const { return host_->stats().rows_of; }
  // Of tables whose workers go in step: the last step of each that is everywhere, by ranks.
  std::map<uint32_t, std::vector<uint32_t>> steps_of() const { return host_->stats().steps_of; }

 private:
  const RemoteFacePtr face_;
  const std::unique_ptr<ps::ServerHost> host_;
};

// lr and momentum.
using PsRates = std::pair<std::optional<double>, std::optional<double>>;

class PsClient;
using PsClientPtr = std::shared_ptr<PsClient>;

// A push or a pull under way. If Python lets go of it before it has ended, the client keeps its
// tensor.
class PsBatch {
 public:
  PsBatch(PsClientPtr client, ps::BatchPtr batch, at::Tensor tensor)
      : client_(std::move(client)), batch_(std::move(batch)), tensor_(std::move(tensor)) {}
  ~PsBatch();
  PsBatch(const PsBatch&) = delete;
  PsBatch& operator=(const PsBatch&) = delete;

  bool done() const;
  // Raises what it ended with, or that it has not in time.
  void wait(double timeout_s) const;

 private:
  const PsClientPtr client_;
  const ps::BatchPtr batch_;
  at::Tensor tensor_;
};

// This process as a worker.
class PsClient : public std::enable_shared_from_this<PsClient> {
 public:
  // Meets the servers that have buckets. newest_map: returns an encoded BucketMap; find_server: of
  // a server's number, its address and how often it was started before. Both may be called in any
  // thread.
  static PsClientPtr make(RemoteFacePtr face, const std::string& own_address,
                          pybind11::function newest_map, pybind11::function find_server,
                          double timeout_s);
  PsClient(RemoteFacePtr face, std::unique_ptr<ps::ClientHost> host)
      : face_(std::move(face)), host_(std::move(host)) {}
  // In a forked child the connections are its parent's, and stay as they are.
  ~PsClient();
  PsClient(const PsClient&) = delete;
  PsClient& operator=(const PsClient&) = delete;

  // spec: an encoded TableSpec.
  void create(uint32_t table, const std::string& spec) const;
  // A tensor of bytes that servers of this host read when it is pushed.
  at::Tensor lend(uint64_t bytes, double timeout_s) const;
  // Tensors are dense, and float32; ids int64.
  std::unique_ptr<PsBatch> assign(uint32_t table, const at::Tensor& values, double timeout_s);
  // rates: of this gradient; nullopt: as the table was made.
  std::unique_ptr<PsBatch> push(uint32_t table, uint64_t first, const at::Tensor& values,
                                const PsRates& rates, double timeout_s);
  // A gradient of a table whose workers go in step.
  std::unique_ptr<PsBatch> push_step(uint32_t table, const at::Tensor& gradient, uint32_t rank,
                                     uint32_t step, uint32_t generation, const PsRates& rates,
                                     double timeout_s);
  // From now on there are so many such workers.
  std::unique_ptr<PsBatch> begin_generation(uint32_t table, uint32_t generation, uint32_t workers,
                                            uint32_t step, double timeout_s);
  std::unique_ptr<PsBatch> push_rows(uint32_t table, const at::Tensor& ids,
                                     const at::Tensor& values, const PsRates& rates,
                                     double timeout_s);
  // step: that all workers have pushed; 0: whatever there is.
  std::unique_ptr<PsBatch> pull(uint32_t table, uint64_t first, const at::Tensor& out,
                                uint32_t step, double timeout_s);
  std::vector<uint32_t> pull_steps(uint32_t table, uint32_t workers, double timeout_s) const;
  std::unique_ptr<PsBatch> pull_rows(uint32_t table, const at::Tensor& ids, const at::Tensor& out,
                                     double timeout_s);
  // For snapshots (ps/client/client.h). Ids are compared as unsigned ones.
  std::unique_ptr<PsBatch> save_shard(uint32_t table, uint64_t shard, const at::Tensor& out,
                                      double timeout_s);
  std::unique_ptr<PsBatch> restore_shard(uint32_t table, uint64_t shard, const at::Tensor& saved,
                                         double timeout_s);
  std::unique_ptr<PsBatch> list_rows(uint32_t table, uint32_t bucket, uint64_t from,
                                     const at::Tensor& out, double timeout_s);
  std::unique_ptr<PsBatch> save_rows(uint32_t table, const at::Tensor& ids, const at::Tensor& out,
                                     double timeout_s);
  std::unique_ptr<PsBatch> restore_rows(uint32_t table, const at::Tensor& ids,
                                        const at::Tensor& saved, double timeout_s);
  std::unique_ptr<PsBatch> empty_rows(uint32_t table, double timeout_s);

  ps::Rebalanced rebalance(double over_s, double timeout_s) const;

  ps::ClientHost& host() const;
  // Whether this is a forked child of the process that has it.
  bool inherited() const { return face_->inherited(); }
  // Until the batch has ended, which writes to it.
  void keep(ps::BatchPtr batch, at::Tensor tensor);

 private:
  // begin: makes the batch, without the GIL.
  template <typename Begin>
  std::unique_ptr<PsBatch> start(const at::Tensor& tensor, double timeout_s, Begin begin);

  const RemoteFacePtr face_;
  std::unique_ptr<ps::ClientHost> host_;
  std::vector<std::pair<ps::BatchPtr, at::Tensor>> kept_;
};

void bind_ps(pybind11::module_& module);

}  // namespace rdmacoll::torch_ext
