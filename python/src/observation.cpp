// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <variant>

#include "python/src/products.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/plan.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::python {
namespace {

using pipeline::ObservationConfig;

/// The summary as JSON, as `ryle run --json` prints it.
std::string run(const ObservationConfig& config, nb::object on_progress, double interval_s,
                const std::string& command_line) {
  std::atomic<int> stop{0};
  Callback progress(std::move(on_progress), stop);
  pipeline::RunOptions options;
  options.command_line = command_line;
  options.stop = &stop;
  options.progress_interval_s = interval_s;
  if (progress)
    options.on_progress = [&](const pipeline::Progress& p) {
      const std::string text = pipeline::to_json(p);
      progress.call([&] { return nb::make_tuple(text); });
    };
  std::string summary;
  run_interruptibly(stop, [&] { summary = to_json(pipeline::run_observation(config, options)); });
  progress.rethrow();
  return summary;
}

std::string plan(const ObservationConfig& config, const std::string& form) {
  const nb::gil_scoped_release released;
  const auto p = pipeline::make_plan(config);
  return form == "json" ? to_json(p) : form == "svg" ? to_svg(p) : to_text(p);
}

// Products of a run, one by one.

/// Power of all beams of a piece of the data.
struct BeamPiece {
  pipeline::BeamStream stream;
  std::vector<float> values;        ///< [beam][channel][sample]
  std::vector<std::uint8_t> valid;  ///< [channel][sample]
  std::int64_t n_samples = 0, first_sample = 0, segment = 0, start_tai_ns = 0;
};

struct NamedCandidate {
  SearchCandidate candidate;
  std::string beam;
};

/// In the order of kStreamKinds. Visibilities are a file of one integration.
using StreamedProduct = std::variant<VisibilityFile, SkyPicture, BeamPiece, NamedCandidate>;
constexpr std::array<const char*, 4> kStreamKinds = {"visibilities", "images", "beams",
                                                     "candidates"};

BeamPiece piece_of(const pipeline::BeamChunk& chunk, const pipeline::BeamStream& stream) {
  BeamPiece piece{stream, {}, {}, chunk.n_samples, chunk.first_sample, chunk.segment, 0};
  const std::int64_t n_channels = stream.frequency.n_channels, n = chunk.n_samples;
  piece.start_tai_ns = chunk.clock.tai_ns(chunk.first_sample);
  piece.values.reserve(count_of(stream.n_beams() * n_channels * n));
  for (std::int64_t beam = 0; beam < stream.n_beams(); ++beam)
    for (std::int64_t c = 0; c < n_channels; ++c)
      piece.values.insert(piece.values.end(), chunk.row(beam, c), chunk.row(beam, c) + n);
  piece.valid.assign(count_of(n_channels * n), 1);
  for (const auto& gap : chunk.absent)
    for (std::int64_t c = gap.channel_begin; c < gap.channel_end; ++c)
      for (std::int64_t t = std::max<std::int64_t>(0, gap.begin - chunk.first_sample);
           t < std::min(n, gap.end - chunk.first_sample); ++t)
        piece.valid[count_of(c * n + t)] = 0;
  return piece;
}

nb::object to_python(VisibilityFile&& file) {
  return nb::cast(std::make_unique<VisibilityFile>(std::move(file)));
}
nb::object to_python(SkyPicture&& picture) {
  return nb::cast(std::make_unique<SkyPicture>(std::move(picture)));
}
nb::object to_python(BeamPiece&& piece) {
  nb::list beams;
  for (const auto& beam : piece.stream.beams)
    beams.append(nb::make_tuple(beam.name, beam.incoherent, beam.position.ra_rad / kDegree_rad,
                                beam.position.dec_rad / kDegree_rad));
  const auto n_channels = count_of(piece.stream.frequency.n_channels);
  const auto n = count_of(piece.n_samples);
  nb::dict d;
  d["array"] = to_array(std::move(piece.values), {piece.stream.beams.size(), n_channels, n});
  d["valid"] = to_array(std::move(piece.valid), {n_channels, n});
  d["beams"] = beams;
  d["first_center_hz"] = piece.stream.frequency.first_center_hz;
  d["channel_width_hz"] = piece.stream.frequency.channel_width_hz;
  d["interval_s"] = piece.stream.sample_interval_s();
  d["integration"] = piece.stream.integration;
  d["telescope"] = piece.stream.telescope;
  d["first_sample"] = piece.first_sample;
  d["segment"] = piece.segment;
  d["start_tai_ns"] = piece.start_tai_ns;
  return d;
}
nb::object to_python(NamedCandidate&& found) {
  nb::dict d = candidate_dict(found.candidate);
  d["beam_name"] = found.beam;
  d["tai_ns"] = found.candidate.tai_ns;
  return d;
}

/// A run on a thread of its own, which hands over what it makes through a queue: of a recording
/// the run waits for a slow reader, live what finds no room is dropped and counted. Files are those
/// of any run.
class StreamedRun {
 public:
  StreamedRun(const ObservationConfig& config, const std::vector<std::string>& kinds,
              std::int64_t n_waiting, const std::string& command_line) {
    if (n_waiting < 1)
      throw ConfigError("waiting = " + std::to_string(n_waiting) +
                        "; 1 or more products is needed");
    state_ = std::make_unique<State>(config, n_waiting);
    state_->options.command_line = command_line;
    for (const auto& kind : kinds) state_->ask_for(kind);
    state_->start();
  }
  StreamedRun(const StreamedRun&) = delete;
  StreamedRun& operator=(const StreamedRun&) = delete;
  ~StreamedRun() {
    // After a fork the thread is the parent's, and what it waits on cannot be taken apart here.
    if (!is_mine()) {
      static_cast<void>(state_.release());
      return;
    }
    const nb::gil_scoped_release released;
    state_.reset();
  }

  /// (kind, product), or none where nothing came within the time (below 0: no limit) or all have
  /// been taken. Throws what the run threw.
  std::optional<nb::tuple> next(double timeout_s) {
    State& state = mine();
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const auto left_s = [&] {
      return timeout_s - std::chrono::duration<double>(Clock::now() - begin).count();
    };
    while (true) {
      const double look_s = timeout_s < 0 ? kLook_s : std::clamp(left_s(), 0.0, kLook_s);
      std::optional<StreamedProduct> product;
      {
        const nb::gil_scoped_release released;
        product = state.queue.pop_for(
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(look_s)));
      }
      if (product) {
        const char* kind = kStreamKinds[product->index()];
        return nb::make_tuple(kind, std::visit([](auto&& p) { return to_python(std::move(p)); },
                                               std::move(*product)));
      }
      if (state.queue.finished()) {
        join();
        return std::nullopt;
      }
      check_signals();
      if (timeout_s >= 0 && left_s() <= 0) return std::nullopt;
    }
  }

  /// The run ends as on a signal: what is open is closed and published. Nothing more is handed
  /// over.
  void stop() {
    State& state = mine();
    if (!state.queue.finished()) ++state.stop;
    state.queue.close();
    while (state.queue.try_pop()) {
    }
  }
  /// Waits for the end of the run. Throws what it threw, once; KeyboardInterrupt after it.
  void join() {
    State& state = mine();
    run_interruptibly(state.stop, [&] {
      const std::lock_guard lock(state.join_mutex);
      state.thread->join();
    });
  }
  /// The run has ended, and everything has been taken.
  bool ended() { return mine().thread->finished() && state_->queue.finished(); }

  std::int64_t dropped(const std::string& kind) {
    const auto* found = std::find(kStreamKinds.begin(), kStreamKinds.end(), kind);
    return found == kStreamKinds.end() ? 0 : mine().dropped[found - kStreamKinds.begin()].load();
  }
  /// Of a run that has ended without an error, else "".
  std::string summary() {
    const std::lock_guard lock(mine().mutex);
    return state_->summary;
  }
  /// The last line of progress as JSON, or "".
  std::string progress() {
    const std::lock_guard lock(mine().mutex);
    return state_->progress ? pipeline::to_json(*state_->progress) : "";
  }

 private:
  static constexpr double kLook_s = 0.05;  // between looks at signals

  struct State {
    ObservationConfig config;
    bool live;
    pipeline::RunOptions options;
    std::atomic<int> stop{0};
    std::array<std::atomic<std::int64_t>, kStreamKinds.size()> dropped{};
    BoundedQueue<StreamedProduct> queue;
    std::mutex mutex, join_mutex;
    std::string summary;
    std::optional<pipeline::Progress> progress;
    std::unique_ptr<StageThread> thread;  // last: uses all of the above

    State(const ObservationConfig& c, std::int64_t n_waiting)
        : config(c),
          live(pipeline::is_real_time(c)),
          queue(count_of(n_waiting), live ? DropPolicy::drop_newest : DropPolicy::block) {
      options.stop = &stop;
      options.on_progress = [this](const pipeline::Progress& p) {
        const std::lock_guard lock(mutex);
        progress = p;
      };
    }

    /// `make` copies the product: not for one that finds no room.
    template <class Make>
    void offer(std::size_t kind, Make make) {
      if (queue.closed()) return;
      if ((live && queue.size() == queue.capacity()) || queue.offer(make()) == QueueResult::dropped)
        ++dropped[kind];
    }

    void ask_for(const std::string& kind) {
      auto& hooks = options.hooks;
      const auto require = [&](bool made, const char* keys) {
        if (!made)
          throw ConfigError("stream: " + config.path + " makes no " + kind + "; set " + keys);
      };
      if (kind == kStreamKinds[0]) {
        const bool spectra = config.source.kind != "file" && !is_live_samples(config.source);
        require(spectra ? wants_visibilities(config) : pipeline::makes_visibilities(config),
                "output.uvh5, output.uvfits or output.ms");
        hooks.on_dump = [this](const VisibilityDump& dump, const Observation& observation) {
          offer(0, [&] { return VisibilityFile{observation, {dump}}; });
        };
      } else if (kind == kStreamKinds[1]) {
        require(wants_images(config), "image.cadence_s, the length of an image in seconds");
        hooks.on_image = [this](const SkyImage& image, const Observation& observation) {
          offer(1, [&] { return picture_of(image, observation); });
        };
      } else if (kind == kStreamKinds[2]) {
        require(pipeline::wants_beams(config), "beams.file, the directions of beams");
        hooks.on_beams = [this](const pipeline::BeamChunk& chunk,
                                const pipeline::BeamStream& stream) {
          offer(2, [&] { return piece_of(chunk, stream); });
        };
      } else if (kind == kStreamKinds[3]) {
        require(pipeline::wants_beams(config) && wants_search(config.search),
                "beams.file and search.dm_max");
        hooks.on_candidate = [this](const SearchCandidate& candidate, const std::string& beam) {
          offer(3, [&] { return NamedCandidate{candidate, beam}; });
        };
      } else {
        throw ConfigError("stream: \"" + kind +
                          "\" is not known; use visibilities, images, beams or candidates");
      }
    }

    void start() {
      thread = std::make_unique<StageThread>(
          "ryle-run", [this](const std::stop_token&) { work(); },
          [this] {
            ++stop;
            queue.close();
          });
    }

    void work() {
      try {
        std::string text = to_json(pipeline::run_observation(config, options));
        const std::lock_guard lock(mutex);
        summary = std::move(text);
      } catch (...) {
        queue.close();
        throw;
      }
      queue.close();
    }
  };

  bool is_mine() const { return getpid() == pid_; }
  State& mine() {
    if (!is_mine())
      throw UnsupportedError(
          "this stream was made before the process forked, its run is the parent's; make the "
          "stream in the process that reads it");
    return *state_;
  }

  pid_t pid_ = getpid();
  std::unique_ptr<State> state_;
};

}  // namespace

void bind_observation(nb::module_& m) {
  nb::class_<ObservationConfig>(m, "ObservationConfig")
      .def_ro("text", &ObservationConfig::text)
      .def_ro("path", &ObservationConfig::path)
      .def("run", &run, nb::arg("on_progress").none(), nb::arg("interval_s"),
           nb::arg("command_line"))
      .def("plan", &plan, nb::arg("form"));
  m.def("load_observation", &pipeline::load_observation, nb::arg("path"), nb::arg("overrides"));
  m.def("parse_observation", &pipeline::parse_observation, nb::arg("text"), nb::arg("origin"),
        nb::arg("overrides"));
  nb::class_<StreamedRun>(m, "StreamedRun")
      .def(nb::init<const ObservationConfig&, const std::vector<std::string>&, std::int64_t,
                    const std::string&>(),
           nb::arg("config"), nb::arg("kinds"), nb::arg("n_waiting"), nb::arg("command_line"))
      .def("next", &StreamedRun::next, nb::arg("timeout_s"))
      .def("stop", &StreamedRun::stop)
      .def("join", &StreamedRun::join)
      .def("dropped", &StreamedRun::dropped, nb::arg("kind"))
      .def("progress", &StreamedRun::progress)
      .def("summary", &StreamedRun::summary)
      .def("ended", &StreamedRun::ended);
}

}  // namespace ryle::python
