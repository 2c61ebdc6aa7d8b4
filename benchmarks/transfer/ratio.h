// Ratios of turns, and how sure their median is. Floor: benchmarks. Thread: any.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace rdmacoll::bench {

struct Ratio {
  double median = 0;
  double low = 0, high = 0;  // between these the median lies with 95 % confidence
};

inline double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Of the turns of the same rounds. The interval as in rdmacoll/bench/interval.py.
inline Ratio ratio(const std::vector<double>& theirs, const std::vector<double>& ours) {
  constexpr double kMayLieOutside = 0.05;
  std::vector<double> ratios;
  for (size_t i = 0; i < theirs.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  std::ranges::sort(ratios);
  const auto count = static_cast<double>(ratios.size());
  double outside = 0, ways = 1;  // ways: to draw so few
  size_t below = 0;
  for (size_t fewer = 0; fewer < ratios.size() / 2; ++fewer) {
    outside += 2 * ways / std::exp2(count);
    if (outside > kMayLieOutside) break;
    below = fewer;
    ways = ways * (count - static_cast<double>(fewer)) / static_cast<double>(fewer + 1);
  }
  return {middle(ratios), ratios[below], ratios[ratios.size() - 1 - below]};
}

}  // namespace rdmacoll::bench
