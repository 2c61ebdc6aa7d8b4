// file_tables. Floor: torch_ext/ps. Thread: any.
#include "torch_ext/ps/file_tables.h"

#include <string>
#include <utility>
#include <vector>

#include "torch_ext/base/milliseconds.h"

namespace rdmacoll::torch_ext {
namespace {

class OfClient final : public files::Tables {
 public:
  OfClient(PsClientPtr client, int64_t timeout_ms, const InterruptCheck* interrupt)
      : client_(std::move(client)), timeout_ms_(timeout_ms), interrupt_(interrupt) {}

  Status read(std::span<const files::Wanted> wanted) override {
    std::vector<ps::BatchPtr> batches;
    for (const files::Wanted& one : wanted) {
      RDMACOLL_RETURN_IF_ERROR(create(one.part));
      batches.push_back(
          host().client().pull_range(one.part.table, one.first, one.into, limit(), 0, one.keeps));
    }
    Status first;
    for (const ps::BatchPtr& batch : batches) {
      const Status status = host().client().wait(batch, limit());
      if (first.ok()) first = status;
    }
    return first;
  }

  Result<std::shared_ptr<files::Writing>> write(const files::Part& part,
                                                std::span<const float> values,
                                                std::shared_ptr<const void> keeps) override {
    RDMACOLL_RETURN_IF_ERROR(create(part));
    auto batch = host().client().push_range(part.table, 0, values, ps::PushAs::Assigned, limit(),
                                            {}, {}, std::move(keeps));
    return std::shared_ptr<files::Writing>(std::make_shared<Push>(*this, std::move(batch)));
  }

  Result<std::shared_ptr<std::byte>> lend(uint64_t bytes) override {
    auto loan = host().lend(bytes, limit());
    if (!loan.ok()) return loan.status();
    std::byte* const data = loan.value()->memory->data();
    return std::shared_ptr<std::byte>(data, [held = loan.take()](std::byte*) {});
  }

 private:
  class Push final : public files::Writing {
   public:
    Push(OfClient& of, ps::BatchPtr batch) : of_(of), batch_(std::move(batch)) {}
    Status wait() override { return of_.host().client().wait(batch_, of_.limit()); }

   private:
    OfClient& of_;
    const ps::BatchPtr batch_;
  };

  ps::ClientHost& host() const { return client_->host(); }
  ps::Limit limit() const {
    return host().limit(timeout_ms_, interrupt_ == nullptr ? InterruptCheck() : *interrupt_);
  }
  Status create(const files::Part& part) {
    return host().client().create(part.table, {.name = "file/" + std::to_string(part.table),
                                               .elements = files::elements_of(part.bytes)});
  }

  const PsClientPtr client_;
  const int64_t timeout_ms_;
  const InterruptCheck* const interrupt_;
};

}  // namespace

std::shared_ptr<files::Tables> file_tables(PsClientPtr client, double timeout_s,
                                           const InterruptCheck* interrupt) {
  return std::make_shared<OfClient>(std::move(client), milliseconds(timeout_s), interrupt);
}

}  // namespace rdmacoll::torch_ext
