// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_stream.hpp"

#include <algorithm>
#include <atomic>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/search/search_device.hpp"

namespace ryle::pipeline {

struct BeamSearch::Impl {
  BeamSearchConfig config;
  const search::UserMask mask;  // its times count from the first sample of all
  Queue outer;
  std::vector<std::unique_ptr<SearchEngines>> engines;
  std::vector<std::unique_ptr<SearchChain>> chains;    // [beam]
  std::vector<std::unique_ptr<DeviceSearch>> devices;  // then no engines and no chains
  std::vector<std::vector<SearchEvent>> found;         // [beam]
  BeamGrouper grouper;
  SearchCounts ended;  // of chains that are gone
  std::int64_t received = 0, mask_tick = 0;
  bool over = false;

  explicit Impl(const BeamSearchConfig& c)
      : config(c),
        mask(c.chain.normalize.mask),
        outer(Queue::cpu(c.n_workers)),
        grouper(c.beams, c.chain.band, c.chain.max_width) {
    found.resize(c.beams.n_beams);
    if (!c.devices.empty())
      make_devices();
    else
      make_engines();
  }

  void make_engines() {
    const auto workers = std::max<std::int64_t>(1, outer.n_workers());
    const std::int64_t n_engines = std::min(workers, config.beams.n_beams);
    for (std::int64_t k = 0; k < n_engines; ++k)
      engines.push_back(std::make_unique<SearchEngines>(
          n_engines == 1 ? outer : Queue::cpu(static_cast<int>(workers / n_engines)),
          config.chain));
    make_chains();
  }

  void make_devices() {
    const auto n = static_cast<std::int64_t>(config.devices.size());
    if (n > config.beams.n_beams)
      throw ConfigError("search: " + std::to_string(n) + " devices for " +
                        std::to_string(config.beams.n_beams) + " beams; name fewer");
    outer = Queue::cpu(static_cast<int>(n));
    for (std::int64_t k = 0; k < n; ++k) {
      const std::int64_t beams = beams_of(k).size();
      devices.push_back(
          std::make_unique<DeviceSearch>(config.devices[k], config.chain, beams,
                                         std::clamp<std::int64_t>(config.n_streams, 1, beams)));
    }
  }
  BeamRange beams_of(std::int64_t device) const {
    return beam_range(config.beams.n_beams, static_cast<std::int64_t>(config.devices.size()),
                      device);
  }

  void restart() {
    config.chain.normalize.mask = mask.since(mask_tick);
    if (devices.empty()) return make_chains();
    for (const auto& device : devices) {
      ended.add(device->counts());
      device->restart(config.chain.normalize.mask);
    }
    received = 0;
    over = false;
  }

  void make_chains() {
    for (const auto& chain : chains) ended.add(chain->counts());
    chains.clear();
    for (std::int64_t b = 0; b < config.beams.n_beams; ++b)
      chains.push_back(std::make_unique<SearchChain>(*engines.front(), config.chain));
    received = 0;
    over = false;
  }

  /// body(device, first beam, events of its beams) on a thread each.
  template <class Body>
  void for_each_device(const Body& body) {
    outer.parallel_for(static_cast<std::int64_t>(devices.size()), [&](std::int64_t k) {
      const std::int64_t first = beams_of(k).first;
      body(k, first, found.data() + first);
    });
  }

  /// body(engines, beam) for all beams; each set of engines takes the next beam when it is free.
  template <class Body>
  void for_each_beam(const Body& body) {
    if (engines.empty()) return;
    const std::int64_t n_beams = config.beams.n_beams;
    if (engines.size() == 1) {
      for (std::int64_t b = 0; b < n_beams; ++b) body(*engines.front(), b);
      return;
    }
    std::atomic<std::int64_t> next{0};
    outer.parallel_for(static_cast<std::int64_t>(engines.size()), [&](std::int64_t slot) {
      for (std::int64_t b = next++; b < n_beams; b = next++) body(*engines[slot], b);
    });
  }

  void group() {
    for (std::size_t b = 0; b < found.size(); ++b)
      grouper.add(static_cast<std::int64_t>(b), found[b]);
  }
  std::int64_t complete_before() const {
    std::int64_t minimum =
        devices.empty() ? chains.front()->complete_before() : devices.front()->complete_before();
    for (const auto& device : devices) minimum = std::min(minimum, device->complete_before());
    for (const auto& chain : chains) minimum = std::min(minimum, chain->complete_before());
    return minimum;
  }
};

BeamSearch::BeamSearch(const BeamSearchConfig& config) : impl_(std::make_unique<Impl>(config)) {}
BeamSearch::~BeamSearch() = default;

void BeamSearch::feed(const float* data, std::int64_t beam_stride, std::int64_t channel_stride,
                      std::int64_t n, std::vector<BeamEvent>& events) {
  Impl& me = *impl_;
  if (me.over) me.restart();
  me.for_each_device([&](std::int64_t k, std::int64_t first, std::vector<SearchEvent>* found) {
    DeviceSearch& device = *me.devices[k];
    if (data == nullptr)
      device.feed(nullptr, 0, 0, n, found);
    else
      device.feed_host(data + first * beam_stride, beam_stride, channel_stride, n, found);
  });
  me.for_each_beam([&](SearchEngines& engines, std::int64_t b) {
    const auto beam = static_cast<std::size_t>(b);
    me.chains[beam]->feed(engines, data == nullptr ? nullptr : data + b * beam_stride,
                          channel_stride, n, me.found[beam]);
  });
  me.received += n;
  me.group();
  me.grouper.take_complete(me.complete_before(), events);
}

void BeamSearch::feed_devices(const std::vector<const float*>& power, std::int64_t beam_stride,
                              std::int64_t channel_stride, std::int64_t n,
                              std::vector<BeamEvent>& events, const std::function<void()>& read) {
  Impl& me = *impl_;
  RYLE_ASSERT(power.size() == me.devices.size());
  if (me.over) me.restart();
  std::atomic<std::size_t> readers{power.size()};
  me.for_each_device([&](std::int64_t k, std::int64_t, std::vector<SearchEvent>* found) {
    const auto at = static_cast<std::size_t>(k);
    me.devices[at]->take(power[at], beam_stride, channel_stride, n);
    if (--readers == 0 && read) read();
    me.devices[at]->search(found);
  });
  me.received += n;
  me.group();
  me.grouper.take_complete(me.complete_before(), events);
}

void BeamSearch::finish(std::vector<BeamEvent>& events) {
  Impl& me = *impl_;
  me.for_each_device([&](std::int64_t k, std::int64_t, std::vector<SearchEvent>* found) {
    me.devices[k]->finish(found);
  });
  me.for_each_beam([&](SearchEngines& engines, std::int64_t b) {
    const auto beam = static_cast<std::size_t>(b);
    me.chains[beam]->finish(engines, me.found[beam]);
  });
  me.group();
  me.grouper.take_all(events);
  me.over = true;
}

void BeamSearch::begin_at(std::int64_t tick) { impl_->mask_tick = tick; }

SearchCounts BeamSearch::counts() const {
  SearchCounts sum = impl_->ended;
  for (const auto& chain : impl_->chains) sum.add(chain->counts());
  for (const auto& device : impl_->devices) sum.add(device->counts());
  return sum;
}
std::int64_t BeamSearch::n_flagged_channels() const {
  std::int64_t maximum = 0;
  for (const auto& chain : impl_->chains) maximum = std::max(maximum, chain->n_flagged_channels());
  for (const auto& device : impl_->devices)
    maximum = std::max(maximum, device->n_flagged_channels());
  return maximum;
}
std::int64_t BeamSearch::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& e : impl_->engines) bytes += e->memory_bytes();
  for (const auto& c : impl_->chains) bytes += c->memory_bytes();
  for (const auto& d : impl_->devices) bytes += d->memory_bytes();
  return bytes;
}
const SearchEngines& BeamSearch::any_engines() const {
  return impl_->devices.empty() ? *impl_->engines.front() : impl_->devices.front()->engines();
}
std::string BeamSearch::implementation() const {
  return std::string(any_engines().dedisperser->implementation());
}
std::vector<std::string> BeamSearch::implementations() const {
  std::vector<std::string> names{implementation()};
  if (impl_->devices.empty()) return names;
  names.insert(names.begin(), "search/cuda/normalize");
  names.emplace_back(any_engines().detector->implementation());
  std::string devices = "search on";
  for (const int device : impl_->config.devices) devices += " cuda:" + std::to_string(device);
  names.push_back(std::move(devices));
  return names;
}
search::TrackError BeamSearch::track_error() const {
  return any_engines().dedisperser->track_error();
}
std::int64_t BeamSearch::n_samples() const { return impl_->received; }
std::int64_t BeamSearch::max_delay_samples() const { return any_engines().max_delay(); }

}  // namespace ryle::pipeline
