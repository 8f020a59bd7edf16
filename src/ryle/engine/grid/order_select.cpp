// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/order_select.hpp"

#include <algorithm>

namespace ryle::grid::detail {
namespace {

constexpr std::int64_t kSortedAtOnce = 12;
// Halving 2^31 items takes 31 rounds; orders that defeat the pivots are sorted.
constexpr int kMaxRounds = 64;

bool before(const OrderItem& a, const OrderItem& b) { return a.x < b.x; }

void insertion_sort(OrderItem* items, std::int64_t n) {
  for (std::int64_t i = 1; i < n; ++i) {
    const OrderItem item = items[i];
    std::int64_t k = i;
    for (; k > 0 && before(item, items[k - 1]); --k) items[k] = items[k - 1];
    items[k] = item;
  }
}

// The middle of nine spread over the list.
float pivot_of(const OrderItem* items, std::int64_t n) {
  constexpr int kTaken = 9;
  OrderItem taken[kTaken];
  for (int i = 0; i < kTaken; ++i) taken[i] = items[(2 * i + 1) * n / (2 * kTaken)];
  insertion_sort(taken, kTaken);
  return taken[kTaken / 2].x;
}

// What is left of the list, with the weight that lies before it and the value that follows it.
struct Rest {
  OrderItem* items;
  std::int64_t n;
  std::uint64_t weight_before = 0;
  float next = 0;
};

double walk(const Rest& rest, std::uint64_t sum) {
  std::uint64_t cumulative = rest.weight_before;
  for (std::int64_t i = 0;; ++i) {
    cumulative += rest.items[i].weight;
    if (2 * cumulative < sum) continue;
    const double x = rest.items[i].x;
    if (2 * cumulative > sum) return x;
    return 0.5 * (x + (i + 1 < rest.n ? rest.items[i + 1].x : rest.next));
  }
}

}  // namespace

// Three-way partitions into fresh lists, without branches on the values: which side an item falls
// on cannot be foretold.
double weighted_median(OrderItem* items, std::int64_t n, std::uint64_t sum, OrderItem* room) {
  Rest rest{items, n};
  OrderItem* lists[3] = {items, room, room + n};
  for (int round = 0; rest.n > kSortedAtOnce; ++round) {
    if (round == kMaxRounds) {
      std::sort(rest.items, rest.items + rest.n, before);
      return walk(rest, sum);
    }
    const float pivot = pivot_of(rest.items, rest.n);
    OrderItem* const low = lists[1];
    OrderItem* const high = lists[2];
    std::int64_t n_low = 0, n_high = 0;
    std::uint64_t w_low = 0, w_equal = 0;
    for (std::int64_t k = 0; k < rest.n; ++k) {
      const OrderItem item = rest.items[k];
      const bool below = item.x<pivot, above = item.x> pivot;
      low[n_low] = item;
      high[n_high] = item;
      n_low += below ? 1 : 0;
      n_high += above ? 1 : 0;
      w_low += below ? item.weight : 0;
      w_equal += below || above ? 0 : item.weight;
    }
    const std::uint64_t to_low = rest.weight_before + w_low, to_equal = to_low + w_equal;
    if (2 * to_low >= sum) {
      rest = {low, n_low, rest.weight_before, pivot};
      std::swap(lists[0], lists[1]);
    } else if (2 * to_equal >= sum) {
      if (2 * to_equal > sum) return pivot;
      const float next = n_high > 0 ? std::min_element(high, high + n_high, before)->x : rest.next;
      return 0.5 * (static_cast<double>(pivot) + next);
    } else {
      rest = {high, n_high, to_equal, rest.next};
      std::swap(lists[0], lists[2]);
    }
  }
  insertion_sort(rest.items, rest.n);
  return walk(rest, sum);
}

}  // namespace ryle::grid::detail
