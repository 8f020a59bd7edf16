// SPDX-License-Identifier: BSD-3-Clause
// Channels and tiles over devices, and what the engine's interface asks for around it.
#include <algorithm>
#include <deque>
#include <exception>
#include <limits>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/device/page_lock.hpp"
#include "ryle/engine/grid/cuda/engine.cuh"
#include "ryle/engine/grid/geometry.hpp"
#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid {
namespace {

using namespace detail;

constexpr const char* kName = "cuda:gather";

std::vector<int> devices_of(const Config& config) {
  std::vector<int> devices = config.devices;
  if (devices.empty()) devices.push_back(0);
  std::vector<int> sorted = devices;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw ConfigError("gridder: a CUDA device is named twice; each takes a share of the work");
  return devices;
}

/// Channels are split over devices, which costs nothing; more devices than channels split the map,
/// too, each of its shares over devices for all channels.
struct Split {
  std::int64_t n_channel_shares = 1, n_tile_shares = 1;
  Split(std::int64_t n_devices, std::int64_t n_channels)
      : n_channel_shares(std::min(n_devices, n_channels)),
        n_tile_shares(n_devices / n_channel_shares) {}
  std::int64_t n() const { return n_channel_shares * n_tile_shares; }
};

// The first exception of any device is the caller's.
template <class Body>
void on_all(std::size_t n, const Body& body) {
  if (n == 1) return body(0);
  std::vector<std::exception_ptr> errors(n);
  std::vector<std::thread> threads;
  for (std::size_t d = 0; d < n; ++d)
    threads.emplace_back([&, d] {
      try {
        body(d);
      } catch (...) {
        errors[d] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

template <class Real>
std::unique_ptr<DeviceGridder<Real>> make_device(int device, const WarpTiling& tiling,
                                                 const WarpTiling& all, const PairTables& tables,
                                                 std::int64_t n_cells,
                                                 const CudaTuning& tuning = {}) {
  const Queue queue = Queue::cuda(device);  // says so where there is no such device
  const cuda::DeviceScope scope(device);
  return std::make_unique<DeviceGridder<Real>>(device, tiling, all, tables, n_cells, tuning);
}

/// What every CudaGridder knows.
class Transfers {
 public:
  virtual ~Transfers() = default;
  virtual double transfer_s() const = 0;
};

double copies_s(const CudaTimeline& timeline) {
  double ms = 0;
  for (const CudaMapper::StageTime& t : timeline.times())
    if (t.stage.starts_with("copy")) ms += t.end_ms - t.begin_ms;
  return 1e-3 * ms;
}

template <class Real>
class CudaGridder final : public Gridder, public Transfers {
 public:
  CudaGridder(const Config& config, const Cells& cells)
      : config_(config),
        split_(static_cast<std::int64_t>(devices_of(config).size()), config.n_channels),
        sums_(cells.directions.size(), config.n_channels) {
    const WarpTiling all = make_warp_tiles(cells, config.convolution);
    for (std::int64_t s = 0; s < split_.n_tile_shares; ++s)
      tilings_.push_back(share_of(all, s, split_.n_tile_shares));
    const PairTables tables = make_pair_tables(config.convolution, sizeof(Real) == 8);
    const std::vector<int> devices = devices_of(config);
    for (std::int64_t d = 0; d < split_.n(); ++d)
      devices_.push_back(make_device<Real>(devices[static_cast<std::size_t>(d)], tiling_of(d), all,
                                           tables, sums_.n_cells()));
  }

  // Locked, copies of many run at the speed of the link; of few, locking takes longer.
  std::vector<PageLock> locked(Positions& samples) const {
    constexpr std::int64_t kWorthLocking = std::int64_t{1} << 19;
    std::vector<PageLock> locks;
    if (samples.size() <= kWorthLocking) return locks;
    const cuda::DeviceScope scope(devices_.front()->device());
    for (LargeVector<double>* axis : {&samples.x, &samples.y, &samples.z})
      locks.emplace_back(axis->data(), 8 * samples.size());
    return locks;
  }

  std::shared_ptr<const GeometryPlan> plan(Queue&, Positions samples) override {
    if (samples.size() > std::numeric_limits<std::uint32_t>::max())
      throw ConfigError("the gridder plans at most 4294967295 samples at once, got " +
                        std::to_string(samples.size()));
    auto plans = std::make_shared<std::vector<DevicePlan>>(devices_.size());
    const std::vector<PageLock> locks = locked(samples);  // by one for all devices
    on_all(devices_.size(), [&](std::size_t d) {
      if (tiling_of(static_cast<std::int64_t>(d)).tiles.empty()) return;
      const cuda::DeviceScope scope(devices_[d]->device());
      (*plans)[d] = devices_[d]->plan(samples);
    });
    auto plan = std::make_shared<GeometryPlan>();
    plan->metadata = plans->front().metadata;
    for (std::int64_t s = 1; s < split_.n_tile_shares; ++s)
      add_metadata((*plans)[static_cast<std::size_t>(s * split_.n_channel_shares)].metadata,
                   plan->metadata);
    plan->metadata.n_samples = samples.size();
    plan->device = plans;
    return plan;
  }

  void execute(Queue& queue, const GeometryPlan& plan, const Samples& samples) override {
    const auto plans = std::static_pointer_cast<std::vector<DevicePlan>>(plan.device);
    if (plans == nullptr || plans->size() != devices_.size())
      throw ConfigError("gridder: the plan was made for other devices than these");
    std::deque<SumsCollector> collectors;
    for (const WarpTiling& tiling : tilings_)
      collectors.emplace_back(sums_, tiling, tilings_.size() == 1);
    const std::int64_t n = split_.n_channel_shares;
    std::vector<double> copies(devices_.size());
    on_all(devices_.size(), [&](std::size_t d) {
      const auto device = static_cast<std::int64_t>(d), share = device % n;
      if (tiling_of(device).tiles.empty()) return;
      DeviceRun run;
      run.samples = &samples;
      run.first_channel = config_.n_channels * share / n;
      run.n_channels = config_.n_channels * (share + 1) / n - run.first_channel;
      run.plan = &(*plans)[d];
      run.collector = &collectors[static_cast<std::size_t>(device / n)];
      const cuda::DeviceScope scope(devices_[d]->device());
      CudaTimeline timeline;
      const Listening listening(*devices_[d], timeline);
      devices_[d]->run(queue, run);
      copies[d] = copies_s(timeline);
    });
    transfer_s_ = *std::max_element(copies.begin(), copies.end());
    for (SumsCollector& collector : collectors) collector.finish(queue);
  }
  std::vector<CellRange> cells_of(const GeometryPlan& plan) const override {
    const auto plans = std::static_pointer_cast<std::vector<DevicePlan>>(plan.device);
    std::vector<CellRange> cells;
    for (std::int64_t s = 0; s < split_.n_tile_shares; ++s) {
      const auto d = static_cast<std::size_t>(s * split_.n_channel_shares);
      if (tilings_[static_cast<std::size_t>(s)].tiles.empty()) continue;
      const cuda::DeviceScope scope(devices_[d]->device());
      add_cells(tilings_[static_cast<std::size_t>(s)], devices_[d]->reached((*plans)[d]), cells);
    }
    return joined(std::move(cells));
  }
  const Sums& sums() const override { return sums_; }
  Sums& sums() override { return sums_; }
  std::string_view implementation() const override { return kName; }
  double transfer_s() const override { return transfer_s_; }

 private:
  /// The device tells a timeline when each stage had it.
  class Listening {
   public:
    Listening(DeviceGridder<Real>& device, CudaTimeline& timeline) : device_(device) {
      device_.set_timeline(&timeline);
    }
    ~Listening() { device_.set_timeline(nullptr); }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    DeviceGridder<Real>& device_;
  };

  const WarpTiling& tiling_of(std::int64_t device) const {
    return tilings_[static_cast<std::size_t>(device / split_.n_channel_shares)];
  }
  static void add_metadata(const PlanMetadata& some, PlanMetadata& all) {
    all.n_tiles += some.n_tiles;
    all.n_candidates += some.n_candidates;  // each knows what is out of reach of all
  }

  Config config_;
  Split split_;
  Sums sums_;
  std::vector<WarpTiling> tilings_;  ///< one for each share of the map
  std::vector<std::unique_ptr<DeviceGridder<Real>>> devices_;
  double transfer_s_ = 0;
};

template <class Real>
class Mapper final : public CudaMapper {
 public:
  Mapper(const Config& config, const Cells& cells, const CudaTuning& tuning)
      : config_(config),
        n_cells_(cells.directions.size()),
        tiling_(make_warp_tiles(cells, config.convolution)),
        device_(make_device<Real>(devices_of(config).front(), tiling_, tiling_,
                                  make_pair_tables(config.convolution, sizeof(Real) == 8), n_cells_,
                                  tuning)),
        host_(Queue::cpu()) {
    plan_.device = device_->device();
  }

  PlanMetadata map(const Input& input, const Finish& finish, const Output& output) override {
    plan_.metadata = {};
    plan_.metadata.n_samples = input.n_samples;
    plan_.metadata.n_tiles = static_cast<std::int64_t>(tiling_.tiles.size());
    if (input.n_samples == 0 || tiling_.tiles.empty()) {
      std::fill_n(output.values, config_.n_channels * n_cells_,
                  std::numeric_limits<float>::quiet_NaN());
      if (output.weight != nullptr) std::fill_n(output.weight, n_cells_, 0.0F);
      if (output.count != nullptr) std::fill_n(output.count, n_cells_, 0);
      return plan_.metadata;
    }
    const std::int64_t together = device_->tuning().chunk_samples;
    const auto n_chunks = static_cast<std::size_t>((input.n_samples + together - 1) / together);
    plan_.chunks.resize(n_chunks);
    for (std::size_t k = 0; k < n_chunks; ++k) {
      DeviceChunk& c = plan_.chunks[k];
      c.first = static_cast<std::int64_t>(k) * together;
      c.n = std::min(together, input.n_samples - c.first);
    }
    DeviceRun run;
    run.samples = &input.samples;
    run.n_channels = config_.n_channels;
    run.plan = &plan_;
    run.longitude_deg = input.longitude_deg;
    run.latitude_deg = input.latitude_deg;
    run.finish = finish;
    run.output = output;
    device_->run(host_, run);
    return plan_.metadata;
  }
  std::vector<StageTime> time_stages(const Input& input, const Finish& finish,
                                     const Output& output) override {
    CudaTimeline timeline;
    struct Listening {
      DeviceGridder<Real>& device;
      ~Listening() { device.set_timeline(nullptr); }
    };
    {
      const Listening listening{*device_};
      device_->set_timeline(&timeline);
      map(input, finish, output);
    }
    return timeline.times();
  }
  std::string_view implementation() const override { return kName; }

 private:
  Config config_;
  std::int64_t n_cells_;
  WarpTiling tiling_;
  std::unique_ptr<DeviceGridder<Real>> device_;
  Queue host_;
  DevicePlan plan_;
};

}  // namespace

std::unique_ptr<Gridder> make_cuda_gridder(const Config& config, const Cells& cells) {
  if (config.precision == Precision::f64 || config.convolution.support_rad > kWidestFloat_rad)
    return std::make_unique<CudaGridder<double>>(config, cells);
  return std::make_unique<CudaGridder<float>>(config, cells);
}

double cuda_transfer_s(const Gridder& gridder) {
  const auto* const on_cuda = dynamic_cast<const Transfers*>(&gridder);
  return on_cuda == nullptr ? 0 : on_cuda->transfer_s();
}

std::unique_ptr<CudaMapper> make_cuda_mapper(const Config& config, const Cells& cells,
                                             const CudaTuning& tuning) {
  check(config.convolution);
  check_cells(cells);
  if (tuning.chunk_samples < 1 || tuning.channels < 1 || tuning.channels > kMaxGroup)
    throw ConfigError(
        "gridder: a CUDA device takes 1 to 12 channels at a time and a sample or more");
  if (config.precision == Precision::f64 || config.convolution.support_rad > kWidestFloat_rad)
    return std::make_unique<Mapper<double>>(config, cells, tuning);
  return std::make_unique<Mapper<float>>(config, cells, tuning);
}

std::vector<std::string> cuda_implementations() {
  if (!cuda_unavailable_reason().empty()) return {};
  return {kName};
}

}  // namespace ryle::grid
