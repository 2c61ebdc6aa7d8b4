// create_backend. Floor: torch_ext/backend.
#include "torch_ext/backend/create.h"

#include "torch_ext/base/interrupt.h"
#include "torch_ext/join/agent_bootstrap.h"
#include "torch_ext/join/process.h"
#include "torch_ext/join/store_bootstrap.h"
#include "torch_ext/join/store_secret.h"

namespace rdmacoll::torch_ext {
namespace {

std::unique_ptr<Bootstrap> bootstrap_of(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                        int size, const std::vector<uint64_t>& members,
                                        const Agent& agent, const InterruptCheck& interrupt) {
  if (agent.introduces)
    return std::make_unique<AgentBootstrap>(agent.address, rank, size, interrupt);
  return std::make_unique<StoreBootstrap>(store, rank, size, members, interrupt);
}

}  // namespace

std::shared_ptr<Session> join_group(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                    int size, const RdmaBackend::Options& options,
                                    const Agent& agent,
                                    std::optional<RdmaBackend::Milliseconds> limit) {
  const WithoutGil without_gil;
  PythonInterrupt interrupt;
  const InterruptCheck check = [&interrupt] { return interrupt.check(); };
  const auto bootstrap =
      bootstrap_of(store, rank, size, options.global_ranks_in_group, agent, check);
  const int64_t timeout_ms = limit.value_or(options.timeout).count();
  const AskSecret ask_secret = [&]() -> Result<SecretSetting> {
    const bool is_drawn = agent.address.empty();
    const Deadline deadline = Deadline::after_ms(SteadyClock(), timeout_ms);
    auto secret = is_drawn ? secret_of_store(store, check, deadline)
                           : AgentBootstrap(agent.address, rank, size, check).secret(deadline);
    if (!secret.ok()) return secret.status();
    return SecretSetting{{.path = "", .text = secret.take()}, is_drawn};
  };
  const GroupName name{options.group_name, options.global_ranks_in_group};
  auto session = Process::instance().join(rank, size, *bootstrap, timeout_ms, options.algorithm,
                                          name, ask_secret);
  if (session.status().code() == StatusCode::Interrupted) interrupt.rethrow();
  auto joined = take_or_throw(std::move(session));
  joined->communicator().set_timeout_ms(options.timeout.count());
  return joined;
}

c10::intrusive_ptr<RdmaBackend> create_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size,
                                               c10::intrusive_ptr<RdmaBackend::Options> options,
                                               const Agent& agent) {
  auto session = join_group(store, rank, size, *options, agent);
  return c10::make_intrusive<RdmaBackend>(std::move(session), std::move(options));
}

}  // namespace rdmacoll::torch_ext
