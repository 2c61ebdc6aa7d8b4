// take_out: what is kept until something has ended, taken out of the list before it is freed: while
// a tensor is freed another thread may have the GIL, and look at the list.
// Floor: torch_ext/base. Thread: with the GIL.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

namespace rdmacoll::torch_ext {

template <typename Kept, typename HasEnded>
std::vector<Kept> take_out(std::vector<Kept>& all, HasEnded has_ended) {
  const auto first =
      std::partition(all.begin(), all.end(), [&](const Kept& one) { return !has_ended(one); });
  std::vector<Kept> ended(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  return ended;
}

}  // namespace rdmacoll::torch_ext
