// Adasum. Floor: torch_ext/order.
#include "torch_ext/order/adasum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

namespace rdmacoll::torch_ext {
namespace {

using TensorList = std::vector<at::Tensor>;

// A square below this counts as 0, as in Horovod: what is divided by it would have no meaning.
constexpr double kLeastSquare = 1.5e-154;  // the root of the least double

// Of two tensors, or of what this rank has of them.
struct Products {
  double of_first = 0;
  double of_second = 0;
  double of_both = 0;
};
constexpr int64_t kProducts = sizeof(Products) / sizeof(double);

// How often each of the two counts.
std::array<double, 2> shares_of(const Products& products) {
  const auto share = [&](double square) {
    return square >= kLeastSquare ? 1 - products.of_both / (2 * square) : 1.0;
  };
  return {share(products.of_first), share(products.of_second)};
}

// In two sums, that each element need not wait for the one before it.
template <typename T>
void add_products(const T* first, const T* second, int64_t count, Products& products) {
  Products even, odd;
  const auto add = [&](Products& sum, int64_t at) {
    const auto a = static_cast<double>(first[at]);
    const auto b = static_cast<double>(second[at]);
    sum.of_first += a * a;
    sum.of_second += b * b;
    sum.of_both += a * b;
  };
  int64_t at = 0;
  for (; at + 1 < count; at += 2) {
    add(even, at);
    add(odd, at + 1);
  }
  if (at < count) add(even, at);
  products.of_first += even.of_first + odd.of_first;
  products.of_second += even.of_second + odd.of_second;
  products.of_both += even.of_both + odd.of_both;
}

template <typename T>
void add_pair(T* first, const T* second, int64_t count, const std::array<double, 2>& shares) {
  for (int64_t i = 0; i < count; ++i) {
    first[i] = static_cast<T>(shares[0] * static_cast<double>(first[i]) +
                              shares[1] * static_cast<double>(second[i]));
  }
}

// Which ranks' tensors are added at a level: those of rank 0 and `step`, of 2 * step and 3 * step,
// and so on. Each sum takes the place of its first.
struct Level {
  int64_t ranks = 0;
  int64_t step = 1;
  int64_t pairs() const { return ranks / (2 * step); }
  bool is_first() const { return step == 1; }
  bool is_last() const { return pairs() == 1; }
};

// The tensors of one dtype, one behind the other, and this rank's slice of those of all ranks.
class OfType {
 public:
  OfType(int64_t rank, int64_t ranks) : rank_(rank), ranks_(ranks) {}

  void add(size_t number, const at::Tensor& tensor) {
    members_.push_back({number, tensor, elements_});
    elements_ += tensor.numel();
  }
  bool empty() const { return elements_ == 0; }

  void pack() {
    const at::Tensor& first = members_.front().tensor;
    is_packed_ = members_.size() > 1 || !first.is_contiguous();
    all_ = is_packed_ ? at::empty({elements_}, first.options()) : first.view({-1});
    if (!is_packed_) return;
    for (const Member& member : members_) part_of(member).copy_(member.tensor);
  }

  RdmaBackend::WorkRef exchange(RdmaBackend& backend) {
    slices_ = at::empty({ranks_ * own()}, all_.options());
    std::vector<int64_t> received(static_cast<size_t>(ranks_), own());
    std::vector<int64_t> sent;
    for (int64_t rank = 0; rank < ranks_; ++rank) sent.push_back(begin(rank + 1) - begin(rank));
    return backend.alltoall_base(slices_, all_, received, sent, {});
  }

  void widen() {
    if (at::isReducedFloatingType(slices_.scalar_type())) slices_ = slices_.to(at::kFloat);
  }

  // call(member's number, this rank's elements of it from the first to the last in a slice)
  template <typename Call>
  void each_member(Call call) const {
    for (const Member& member : members_) {
      const int64_t first = std::max(member.begin - begin(rank_), int64_t{0});
      const int64_t last = std::min(member.begin + member.tensor.numel() - begin(rank_), own());
      if (first < last) call(member.number, first, last);
    }
  }

  // products: those of pair p of tensor t are at t * pairs + p
  void multiply(const Level& level, Products* products) const {
    with_slices([&](auto* slices) {
      each_member([&](size_t number, int64_t first, int64_t last) {
        Products* of_pair = products + static_cast<int64_t>(number) * level.pairs();
        for (int64_t pair = 0; pair < level.pairs(); ++pair) {
          auto* one = slices + 2 * pair * level.step * own();
          add_products(one + first, one + level.step * own() + first, last - first, of_pair[pair]);
        }
      });
    });
  }

  // factors: of the sums, by the tensor's number
  void add_pairs(const Level& level, const Products* products, const std::vector<double>& factors) {
    with_slices([&](auto* slices) {
      each_member([&](size_t number, int64_t first, int64_t last) {
        const Products* of_pair = products + static_cast<int64_t>(number) * level.pairs();
        for (int64_t pair = 0; pair < level.pairs(); ++pair) {
          std::array<double, 2> shares = shares_of(of_pair[pair]);
          for (double& share : shares) share *= factors[number];
          auto* one = slices + 2 * pair * level.step * own();
          add_pair(one + first, one + level.step * own() + first, last - first, shares);
        }
      });
    });
  }

  RdmaBackend::WorkRef give_back(RdmaBackend& backend) {
    TensorList from{slices_.narrow(0, 0, own()).to(all_.scalar_type())};
    RdmaBackend::TensorLists to(1);
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      to[0].push_back(all_.narrow(0, begin(rank), begin(rank + 1) - begin(rank)));
    }
    return backend.allgather(to, from, {});
  }

  void unpack() {
    if (!is_packed_) return;
    for (const Member& member : members_) member.tensor.copy_(part_of(member));
  }

 private:
  struct Member {
    size_t number;
    at::Tensor tensor;
    int64_t begin;
  };

  // Where a rank's slice begins; of one more than there are: where the last one ends.
  int64_t begin(int64_t rank) const {
    return elements_ / ranks_ * rank + std::min(rank, elements_ % ranks_);
  }
  int64_t own() const { return begin(rank_ + 1) - begin(rank_); }
  at::Tensor part_of(const Member& member) const {
    return all_.narrow(0, member.begin, member.tensor.numel()).view(member.tensor.sizes());
  }

  template <typename Call>
  void with_slices(Call call) const {
    if (slices_.scalar_type() == at::kDouble) {
      call(slices_.data_ptr<double>());
    } else {
      call(slices_.data_ptr<float>());
    }
  }

  int64_t rank_;
  int64_t ranks_;
  int64_t elements_ = 0;
  bool is_packed_ = false;
  std::vector<Member> members_;
  at::Tensor all_;
  at::Tensor slices_;  // rank by rank
};

class Stages : public std::enable_shared_from_this<Stages> {
 public:
  Stages(const RdmaBackend& backend, std::vector<NamedRun> runs, std::vector<AdasumTensor> tensors)
      : runs_(std::move(runs)), tensors_(std::move(tensors)), level_{backend.getSize()} {
    std::map<at::ScalarType, OfType> by_type;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const at::Tensor& tensor = tensors_[i].tensor;
      by_type.try_emplace(tensor.scalar_type(), backend.getRank(), backend.getSize())
          .first->second.add(i, tensor);
    }
    for (auto& [type, of_type] : by_type) {
      if (!of_type.empty()) types_.push_back(std::move(of_type));
    }
  }

  // Copies first, which is nothing to do while others wait for their turn.
  StartedRuns begin() {
    if (types_.empty()) return {runs_, {}, {}, {}};
    return stage({}, &Stages::pack, &Stages::exchange);
  }

 private:
  using Works = std::vector<RdmaBackend::WorkRef>;
  using Finish = void (Stages::*)();
  using Next = StartedRuns (Stages::*)(RdmaBackend&);

  StartedRuns stage(Works works, Finish finish, Next next) {
    StartedRuns started{runs_, std::move(works), {}, {}};
    started.finish.push_back([self = shared_from_this(), finish] {
      const at::NoGradGuard no_grad;
      (*self.*finish)();
    });
    if (next != nullptr) {
      started.next = [self = shared_from_this(), next](RdmaBackend& backend) {
        return (*self.*next)(backend);
      };
    }
    return started;
  }

  void pack() {
    for (OfType& one : types_) one.pack();
  }

  StartedRuns exchange(RdmaBackend& backend) {
    Works works;
    for (OfType& one : types_) works.push_back(one.exchange(backend));
    return stage(std::move(works), &Stages::multiply_first, &Stages::reduce);
  }

  void multiply_first() {
    for (OfType& one : types_) one.widen();
    multiply();
  }

  void multiply() {
    products_ = at::zeros({static_cast<int64_t>(tensors_.size()) * level_.pairs() * kProducts},
                          at::kDouble);
    for (const OfType& one : types_) one.multiply(level_, products());
  }

  StartedRuns reduce(RdmaBackend& backend) {
    TensorList reduced{products_};
    Works works{backend.allreduce(reduced, {})};
    return stage(std::move(works), &Stages::end_level,
                 level_.is_last() ? &Stages::give_back : &Stages::reduce);
  }

  void end_level() {
    std::vector<double> factors;
    for (const AdasumTensor& one : tensors_) {
      factors.push_back((level_.is_first() ? one.prescale : 1) *
                        (level_.is_last() ? one.postscale : 1));
    }
    for (OfType& one : types_) one.add_pairs(level_, products(), factors);
    if (level_.is_last()) return;
    level_.step *= 2;
    multiply();
  }

  StartedRuns give_back(RdmaBackend& backend) {
    Works works;
    for (OfType& one : types_) works.push_back(one.give_back(backend));
    return stage(std::move(works), &Stages::unpack, nullptr);
  }

  void unpack() {
    for (OfType& one : types_) one.unpack();
  }

  Products* products() const { return reinterpret_cast<Products*>(products_.data_ptr<double>()); }

  std::vector<NamedRun> runs_;
  std::vector<AdasumTensor> tensors_;
  Level level_;
  std::vector<OfType> types_;
  at::Tensor products_;  // of the level
};

}  // namespace

StartedRuns start_adasum(const RdmaBackend& backend, std::vector<NamedRun> runs,
                         std::vector<AdasumTensor> tensors) {
  return std::make_shared<Stages>(backend, std::move(runs), std::move(tensors))->begin();
}

}  // namespace rdmacoll::torch_ext
