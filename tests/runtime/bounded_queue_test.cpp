// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/runtime/bounded_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <numeric>
#include <thread>

#include "ryle/core/random.hpp"

namespace ryle {
namespace {

using namespace std::chrono_literals;

// The queue as the textbook has it, one thread.
struct Model {
  std::size_t capacity;
  DropPolicy policy;
  std::deque<int> items;
  std::uint64_t dropped = 0;
  bool closed = false;

  QueueResult offer(int item) {
    if (closed) return QueueResult::closed;
    if (items.size() == capacity) {
      ++dropped;
      if (policy == DropPolicy::drop_newest) return QueueResult::dropped;
      items.pop_front();
    }
    items.push_back(item);
    return QueueResult::done;
  }
  QueueResult push(int item) {
    if (closed) return QueueResult::closed;
    if (items.size() == capacity) return QueueResult::full;
    items.push_back(item);
    return QueueResult::done;
  }
  std::optional<int> pop() {
    if (items.empty()) return std::nullopt;
    const int item = items.front();
    items.pop_front();
    return item;
  }
};

void run_against_model(std::size_t capacity, DropPolicy policy, std::uint64_t seed,
                       int n_operations) {
  BoundedQueue<int> queue(capacity, policy);
  Model model{capacity, policy, {}, 0, false};
  for (int i = 0; i < n_operations; ++i) {
    const auto key = combine(seed, static_cast<std::uint64_t>(i));
    int item = i;
    switch (key % 8) {
      case 0:
      case 1:
        // A full blocking queue would wait for ever here: that case is the threaded test's.
        if (policy != DropPolicy::block || model.items.size() < capacity || model.closed) {
          ASSERT_EQ(queue.offer(item), model.offer(item)) << "operation " << i;
        }
        break;
      case 2:
      case 3:
      case 4:
        ASSERT_EQ(queue.try_push(item), model.push(item)) << "operation " << i;
        break;
      case 5:
      case 6:
        ASSERT_EQ(queue.try_pop(), model.pop()) << "operation " << i;
        break;
      default:
        ASSERT_EQ(queue.pop_for(0ms), model.pop()) << "operation " << i;
    }
    if (key % 5003 == 0) {
      queue.close();
      model.closed = true;
    }
    ASSERT_EQ(queue.size(), model.items.size());
    ASSERT_EQ(queue.dropped(), model.dropped);
    ASSERT_EQ(queue.finished(), model.closed && model.items.empty());
    if (model.closed && model.items.empty()) return;  // nothing can change any more
  }
}

TEST(BoundedQueue, AgreesWithTheSequentialModel) {
  for (const auto policy : {DropPolicy::block, DropPolicy::drop_newest, DropPolicy::drop_oldest}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      run_against_model(1 + seed % 7, policy, seed, 6000);
    }
  }
}

// Producers and consumers at once: every item arrives once, in each producer's order, whoever takes
// it.
TEST(BoundedQueue, HandsEveryItemOverOnceBetweenThreads) {
  constexpr int kProducers = 3, kConsumers = 2, kItems = 20'000;
  BoundedQueue<int> queue(5);
  std::vector<std::vector<int>> taken(kConsumers);
  std::vector<std::thread> producers, consumers;
  for (int c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&queue, &mine = taken[static_cast<std::size_t>(c)]] {
      while (const auto item = queue.pop()) mine.push_back(*item);
    });
  }
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kItems; ++i) {
        int item = p * kItems + i;
        if (i % 3 == 0) {
          while (queue.try_push(item) == QueueResult::full) {
          }
        } else {
          ASSERT_EQ(queue.offer(item), QueueResult::done);
        }
      }
    });
  }
  for (auto& t : producers) t.join();
  queue.close();
  for (auto& t : consumers) t.join();
  std::vector<int> seen(kProducers * kItems, 0);
  for (const auto& mine : taken) {
    std::vector<int> last(kProducers, -1);
    for (const int item : mine) {
      ++seen[static_cast<std::size_t>(item)];
      int& previous = last[static_cast<std::size_t>(item / kItems)];
      EXPECT_LT(previous, item);
      previous = item;
    }
  }
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), kProducers * kItems);
  EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 1);
}

TEST(BoundedQueue, CloseWakesEveryWaiter) {
  BoundedQueue<int> full(1), empty(1);
  int item = 1;
  ASSERT_EQ(full.try_push(item), QueueResult::done);
  std::thread producer([&] { EXPECT_EQ(full.offer(2), QueueResult::closed); });
  std::thread consumer([&] { EXPECT_EQ(empty.pop(), std::nullopt); });
  std::this_thread::sleep_for(5ms);
  full.close();
  empty.close();
  producer.join();
  consumer.join();
  EXPECT_EQ(full.try_pop(), 1);  // what was in stays
}

// A consumer that stands still costs the newest, a monitor that stands still the oldest.
TEST(BoundedQueue, DropsWhatItsPolicySays) {
  BoundedQueue<int> newest(2, DropPolicy::drop_newest), oldest(2, DropPolicy::drop_oldest);
  for (int i = 0; i < 5; ++i) {
    newest.offer(i);
    oldest.offer(i);
  }
  EXPECT_EQ(newest.try_pop(), 0);
  EXPECT_EQ(newest.try_pop(), 1);
  EXPECT_EQ(oldest.try_pop(), 3);
  EXPECT_EQ(oldest.try_pop(), 4);
  EXPECT_EQ(newest.dropped(), 3u);
  EXPECT_EQ(oldest.dropped(), 3u);
}

}  // namespace
}  // namespace ryle
