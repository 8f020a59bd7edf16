// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/image/cost_model.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/math/image_trigger.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

/// From an observation file to the all-sky imager: sizes, gains, dead inputs, the choice of path.
namespace ryle::pipeline {

/// Longest image made in one piece: the sky turns 15 arcsec/s, 0.05 pixel of 1 degree in 12 s
/// (image.md 3). Longer cadences are stacks.
inline constexpr double kLongestImage_s = 5;

/// Spectra of one image, and images of one stack, for a cadence. cadence_s = 0: everything there
/// is (n_spectra; 0 = not known, then 1 s).
struct Cadence {
  std::int64_t spectra_per_image = 1;
  std::int64_t images_per_stack = 1;
};
Cadence make_cadence(double cadence_s, double spectra_per_s, std::int64_t n_spectra);

/// Mean power of every input over the valid spectra and channels of a gulp.
struct InputLevels {
  std::vector<double> sum;  ///< [input] of |v|^2
  std::vector<double> n;    ///< [input] samples behind it
  bool empty() const { return sum.empty(); }
  double power(std::size_t input) const { return n[input] > 0 ? sum[input] / n[input] : 0; }
};
/// Adds up to max_spectra spectra of (about) max_channels channels. valid as in image::FieldInput.
void add_levels(InputLevels& levels, const ConstBlockView& blocks, std::int64_t n_spectra,
                const std::uint64_t* valid, std::int64_t valid_words,
                std::int64_t valid_channel_stride_words, std::int64_t max_spectra,
                std::int64_t max_channels);

/// Inputs that are not to be used: bad in the layout or station file, or with a power outside
/// [dead_below, dead_above] x the median of the others. An input without any sample keeps what
/// `before` says (empty = used). Throws FormatError when none is left.
struct DeadInputs {
  std::vector<std::uint8_t> flags;  ///< [input] 1 = not used
  std::int64_t n_bad = 0;           ///< by the layout or station file
  std::int64_t n_dead = 0;          ///< by power
};
DeadInputs find_dead(const ArrayLayout& array, const InputLevels& levels, const ImageConfig& config,
                     std::span<const std::uint8_t> before = {});

/// Whether inputs are scaled to equal power: asked for, or "auto" and nothing is calibrated.
bool equalizes(const ObservationConfig& config);

/// Calibration of the imager, [channel][input]; 0 where an input is not used.
/// @eq c_a = (f_a / g_a) exp(+2 pi i nu cable_a) sqrt(Jy per count^2)   (image.md 1)
/// With equalization divided by the rms of the input: the image is then a fraction of the power of
/// an antenna.
std::vector<cf32> imager_gains(const ObservationConfig& config, const ArrayLayout& array,
                               const FrequencyAxis& frequency, const InputLevels& levels,
                               std::span<const std::uint8_t> dead, double jy_per_count2);

/// The problem of the imager, path as asked for (perhaps automatic).
image::AllSkyConfig make_sky_config(const ObservationConfig& config, const ArrayLayout& array,
                                    const FrequencyAxis& frequency, std::int64_t spectra_per_image,
                                    std::span<const std::uint8_t> dead);

/// What the planner chose, with every path's prediction.
struct SkyPlan {
  image::Plan plan;
  image::Path path = image::Path::automatic;  ///< never automatic
  double predicted_s = 0;                     ///< per image
  std::int64_t bytes = 0;                     ///< of the imager and the trigger
  image::CoreSpeed core_speed;                ///< that the times hold at; 0 = not known (GPU)
};
/// The trigger of these images (image.trigger_sigma).
math::ImageTriggerConfig trigger_config(const ObservationConfig& config,
                                        const image::AllSkyConfig& sky);
/// Rates of this machine: measured ones where `ryle bench image --calibrate` left them, else the
/// defaults.
image::CostModel machine_cost_model(Queue& queue);
/// Throws UnsupportedError with every path's reason when none can be taken; OsLimitError when the
/// memory does not suffice. `n_images`: what the set-up of the imager is spread over, 0 = no end.
SkyPlan choose_path(const ObservationConfig& config, const image::AllSkyConfig& sky, Queue& queue,
                    bool correlator_runs_anyway = false, std::int64_t n_images = 0);
/// Images in a recording of n_spectra; 0 = not known, no end.
std::int64_t images_in(std::int64_t n_spectra, std::int64_t spectra_per_image);
/// Predictions as lines of text and as a JSON object.
std::string plan_text(const SkyPlan& plan, double image_s);
std::string plan_json(const SkyPlan& plan, double image_s);

/// Codes of the planes as SkyImage::stokes wants them: I Q U V = 1..4; XX YY = -5 -6, then
/// kPlaneReXY and kPlaneImXY (FITS has no real-valued codes for those: the writer makes an HDU).
std::vector<int> stokes_codes(const image::AllSkyConfig& sky);
/// The beam of the images at zenith. `dead`: [input] left out beside the bad ones.
std::optional<SynthesizedBeam> sky_beam(const image::AllSkyConfig& sky,
                                        std::span<const std::uint8_t> dead);
/// Axis of the bins: centres of b channels.
FrequencyAxis bin_axis(const image::AllSkyConfig& sky);

}  // namespace ryle::pipeline
