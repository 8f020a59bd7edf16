// SPDX-License-Identifier: BSD-3-Clause
// The all-sky imagers on the device against the reference, and against one another where the
// reference would take long.
#include "ryle/engine/image/image.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>

#include "ryle/core/error.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#include "ryle/engine/image/cuda/all_sky.hpp"
#endif

namespace ryle::image {
namespace {

using test::AllSkyCase;
using test::CaseData;
using test::Tolerance;

class CudaAllSky : public ryle::test::CudaTest {};

TEST_F(CudaAllSky, VisGridConforms) {
  for (const auto& c : test::cases_for(Path::vis_grid)) {
    test::check_vis_imager(queue(), "cuda", Path::vis_grid, c);
  }
}

TEST_F(CudaAllSky, VisGridWithCorrelatedFunctionsConforms) {
  for (auto c : test::cases_for(Path::vis_grid, true)) {
    c.config.function.correlated = true;
    c.label += ", correlated";
    test::check_vis_imager(queue(), "cuda", Path::vis_grid, c);
  }
}

TEST_F(CudaAllSky, EfieldConforms) {
  for (const auto& c : test::cases_for(Path::efield)) {
    test::check_field_imager(queue(), "cuda", Path::efield, c);
  }
}

// The fused kernel alone, small enough for every tool of the sanitizer.
TEST_F(CudaAllSky, FusedEfieldConforms) {
  auto c = test::case_of("fused", test::random_array(12, 128, 2, 70), 20);
  c.config.channels.n_channels = 1;
  c.random_gains = true;
  c.gulps = {3, 17};
  test::check_field_imager(queue(), "cuda", Path::efield, c);
}

// Operands of eleven bits: errors of the antennas are independent, so the error of the image falls
// with the root of their number. 3e-5 is that of 255 antennas (image.md 7: 1.4e-5).
Tolerance half_tolerance(const AllSkyConfig& config) {
  const auto used = antennas_used(config);
  const auto n = std::max<double>(1, static_cast<double>(std::count(used.begin(), used.end(), 1)));
  const double more = std::max(1.0, std::sqrt(255 / n));
  return {3e-5 * more, 3e-4 * more};
}

void check_half(Queue& queue, const AllSkyCase& c) {
  const Images found = test::field_images(queue, "cuda", Path::efield_half, c);
  test::expect_same_images(found, test::reference_images(c, Path::efield_half), c.config,
                           Path::efield_half, half_tolerance(c.config), c.label);
}

TEST_F(CudaAllSky, EfieldHalfConforms) {
  for (const auto& c : test::cases_for(Path::efield_half)) {
    // 512 antennas and 102 rows of cells: more than shared memory holds. Apertures: fp32 only.
    if (c.config.function.apertures.empty() && c.config.antenna_enu_m.size() < 512) {
      check_half(queue(), c);
    }
  }
}

TEST_F(CudaAllSky, SmallEfieldHalfConforms) {
  auto c = test::case_of("small, half", test::random_array(12, 128, 2, 40), 20);
  c.config.channels.n_channels = 1;
  c.random_gains = true;
  c.gulps = {3, 17};
  check_half(queue(), c);
}

TEST_F(CudaAllSky, EfieldHalfRejectsWhatDoesNotFit) {
  AllSkyConfig config = test::random_array(40, 256, 2, 180);
  config.implementation = "cuda";
  config.path = Path::efield_half;
  try {
    make_field_imager(queue(), config);
    ADD_FAILURE() << "180 rows of cells were taken";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("use the path efield"), std::string::npos)
        << error.what();
  }
}

TEST_F(CudaAllSky, VisDftConforms) {
  for (const auto& c : test::cases_for(Path::vis_dft)) {
    test::check_vis_imager(queue(), "cuda", Path::vis_dft, c);
  }
}

TEST_F(CudaAllSky, EfieldDftConforms) {
  for (const auto& c : test::cases_for(Path::efield_dft)) {
    test::check_field_imager(queue(), "cuda", Path::efield_dft, c);
  }
}

TEST_F(CudaAllSky, SmallEfieldDftConforms) {
  auto c = test::case_of("small, Fourier sum", test::random_array(12, 64, 2, 24), 20);
  c.config.channels.n_channels = 1;
  c.random_gains = true;
  c.gulps = {3, 17};
  test::check_field_imager(queue(), "cuda", Path::efield_dft, c);
}

// Apertures that differ between antennas and polarizations, with all else that changes the sums.
// What the case "an aperture per antenna" of all implementations leaves out.
std::vector<AllSkyCase> aperture_cases() {
  std::vector<AllSkyCase> cases;
  const auto add = [&](const std::string& label, AllSkyConfig config, double width_m,
                       std::int64_t n_spectra = 3) -> AllSkyCase& {
    test::give_apertures(config, width_m);
    cases.push_back(test::case_of("apertures, " + label, std::move(config), n_spectra));
    return cases.back();
  };
  // A cell is 2.0 m at 60 MHz.
  for (const std::int64_t k : {3, 4, 8, 9}) {
    auto config = test::random_array(9, 64, 2, 30);
    config.function.support = k;
    add("support " + std::to_string(k), config, 1.7 * static_cast<double>(k), 2);
  }
  add("autos kept", test::random_array(10, 64, 2, 20), 10).config.remove_autos = false;
  add("one polarization", test::random_array(9, 64, 1, 20), 10, 5);
  add("linear products", test::random_array(9, 64, 2, 20), 10).config.products = Products::linear;
  add("intensity", test::random_array(9, 64, 2, 20), 10).config.products = Products::intensity;
  add("grid 90", test::random_array(9, 90, 2, 36), 10);
  add("wrapped", test::random_array(9, 64, 2, 102), 10).config.allow_wrap = true;
  auto& bins = add("bins of three channels", test::random_array(8, 64, 2, 20), 10, 2);
  bins.config.channels = {40e6, 5e6, 5};
  bins.config.n_channels_per_bin = 3;
  auto& losses = add("losses, gains, gaps", test::random_array(14, 64, 2, 20), 10, 150);
  losses.lost = 0.2;
  losses.random_gains = true;
  losses.gaps = true;
  losses.gulps = {1, 128, 20, 1};
  auto rough = test::random_array(10, 64, 2, 24);
  test::tilt(rough, -0.0262, 0.0178, 0.2);
  std::rotate(rough.inputs.begin(), rough.inputs.begin() + 7, rough.inputs.end());
  std::swap(rough.inputs[2], rough.inputs[11]);
  rough.inputs[4].bad = true;
  rough.inputs[5].bad = true;
  rough.inputs.erase(rough.inputs.begin() + 9);
  add("rough, inputs shuffled, some missing", rough, 10).format = SampleFormat::ci8;
  return cases;
}

TEST_F(CudaAllSky, EfieldOfAperturesConforms) {
  for (const auto& c : aperture_cases()) test::check_field_imager(queue(), "cuda", Path::efield, c);
}

TEST_F(CudaAllSky, VisGridOfAperturesConforms) {
  for (const auto& c : aperture_cases()) test::check_vis_imager(queue(), "cuda", Path::vis_grid, c);
}

// Small enough for every tool of the sanitizer.
TEST_F(CudaAllSky, SmallAperturesConform) {
  auto config = test::random_array(7, 64, 2, 20);
  config.channels.n_channels = 1;
  test::give_apertures(config, 10);
  auto c = test::case_of("small, apertures", config, 20);
  c.random_gains = true;
  c.gulps = {3, 17};
  test::check_field_imager(queue(), "cuda", Path::efield, c);
  test::check_vis_imager(queue(), "cuda", Path::vis_grid, c);
}

TEST_F(CudaAllSky, WhatHasNoAperturesRejectsThem) {
  AllSkyConfig config = test::aperture_case().config;
  config.implementation = "cuda";
  config.path = Path::efield_half;
  try {
    make_field_imager(queue(), config);
    ADD_FAILURE() << "efield-half took apertures";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("use the path efield"), std::string::npos)
        << error.what();
  }
  // Fourier sums weight all antennas alike, in every implementation.
  config.path = Path::efield_dft;
  EXPECT_THROW(make_field_imager(queue(), config), ConfigError);
  config.path = Path::vis_dft;
  EXPECT_THROW(make_vis_imager(queue(), config), ConfigError);
}

#ifdef RYLE_HAVE_CUDA

/// 96 antennas on 128 cells, as station and band want it.
AllSkyCase station(std::int64_t n_antennas, double extent_cells, std::int64_t n_spectra) {
  auto config = test::random_array(n_antennas, 128, 2, extent_cells);
  test::tilt(config, 0.02, -0.01, 0.1);
  config.channels = {60e6, 25e3, 3};
  auto c = test::case_of(std::to_string(n_antennas) + " antennas over " +
                             std::to_string(static_cast<int>(extent_cells)) + " cells",
                         config, n_spectra);
  c.random_gains = true;
  c.lost = 0.05;
  return c;
}

class Correlated {
 public:
  Correlated(Queue& queue, const AllSkyCase& c)
      : queue_(queue), on_queue_(queue), data_(c), case_(c) {
    correlator_ = correlate::make_correlator(
        queue, {.n_inputs = static_cast<std::int64_t>(c.config.inputs.size()),
                .n_channels = c.config.channels.n_channels,
                .format = c.format,
                .max_spectra = c.n_spectra,
                .implementation = "cuda:mma_s8"});  // hands its tiles over
    input_ = data_.input(0, c.n_spectra);
    const auto bytes =
        dense_blocks_bytes(c.format, input_.blocks.n_channels, c.n_spectra, input_.blocks.n_inputs);
    input_.blocks.data = on_queue_(input_.blocks.data, bytes);
  }
  correlate::Correlator& correlator() { return *correlator_; }
  void add() {
    correlate::Input input;
    input.blocks = input_.blocks;
    input.n_spectra = case_.n_spectra;
    input.valid = input_.valid;
    input.valid_words = input_.valid_words;
    correlator_->execute(queue_, input);
  }
  VisInput on_device() {
    const auto sums = correlate::finish_on_device(queue_, *correlator_);
    VisInput input;
    input.type = sums.integer ? VisInput::Type::ci64 : VisInput::Type::cf64;
    input.sums = sums.sums;
    input.tiles = sums.tiles;
    input.tile_shift = sums.tile_shift;
    input.counts = sums.counts;
    input.n_spectra = sums.n_spectra;
    return input;
  }
  const CaseData& data() const { return data_; }
  const FieldInput& field() const { return input_; }

 private:
  Queue& queue_;
  test::OnQueue on_queue_;
  CaseData data_;
  AllSkyCase case_;
  std::unique_ptr<correlate::Correlator> correlator_;
  FieldInput input_;
};

// Transforming every spectrum and transforming the correlation give the same Fourier sums: operands
// of one half and two, more spectra than a batch, a number that is no multiple of one.
TEST_F(CudaAllSky, EfieldDftEqualsVisDft) {
  for (const std::int64_t antennas : {120, 240, 256, 300}) {
    AllSkyCase c = station(antennas, 50, 213);
    c.config.channels.n_channels = 2;
    Correlated source(queue(), c);
    source.add();
    AllSkyConfig config = c.config;
    config.path = Path::vis_dft;
    auto sums = make_vis_imager(queue(), config);
    sums->set_gains(queue(), source.data().gains());
    Images wanted;
    sums->execute(queue(), source.on_device(), wanted);
    config.path = Path::efield_dft;
    auto imager = make_field_imager(queue(), config);
    imager->set_gains(queue(), source.data().gains());
    Images found = test::garbage_images();
    imager->execute(queue(), source.field());
    imager->finish(queue(), found);
    test::expect_same_images(found, wanted, config, Path::efield_dft, {5e-5, 5e-4}, c.label);
    Images again;
    imager->execute(queue(), source.field());
    imager->finish(queue(), again);
    EXPECT_EQ(std::memcmp(found.pixels.data(), again.pixels.data(), found.pixels.size() * 4), 0)
        << c.label << ": not bit-identical for a fixed plan";
  }
}

// image.md 7: 255 antennas and a thousand spectra against the fp32 path, error 3e-5 of the peak and
// gain 1 +- 1e-4; full-scale samples in phase must not overflow.
TEST_F(CudaAllSky, EfieldHalfAtFullSize) {
  for (const double extent : {24.0, 55.0, 84.0}) {
    for (const bool full_scale : {false, true}) {
      AllSkyCase c = station(255, extent, full_scale ? 40 : 1000);
      c.config.channels.n_channels = 1;
      c.config.n_spectra_per_image = c.n_spectra;
      c.full_scale = full_scale;
      c.random_gains = false;  // the sky stays in phase; heights turn the samples
      c.lost = 0;
      Images images[2];
      for (int half = 0; half < 2; ++half) {
        images[half] =
            test::field_images(queue(), "cuda", half == 1 ? Path::efield_half : Path::efield, c);
      }
      test::expect_same_images(images[1], images[0], c.config, Path::efield_half, {3e-5, 3e-4},
                               c.label);
      double cross = 0, power = 0, squares = 0, peak = 0, n = 0;
      for (std::size_t p = 0; p < 128 * 128; ++p) {
        const double f = images[0].pixels[p], h = images[1].pixels[p];
        if (std::isnan(f)) continue;
        cross += f * h, power += f * f, n += 1;
        squares += (h - f) * (h - f);
        peak = std::max(peak, std::abs(f));
      }
      EXPECT_NEAR(cross / power, 1, 1e-4) << c.label;
      std::cout << c.label << (full_scale ? ", full scale" : "")
                << ": gain - 1 = " << cross / power - 1
                << ", rms / peak = " << std::sqrt(squares / n) / peak << "\n";
    }
  }
}

// The sums never leave the device: tiles of one gulp, int64 after a fold, and a second dump that
// must not see the first.
TEST_F(CudaAllSky, ImagesTheTilesOfTheCorrelator) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8}) {
    AllSkyCase c = station(45, 50, 200);
    c.format = format;
    c.config.path = Path::vis_grid;
    Correlated source(queue(), c);
    auto imager = make_vis_imager(queue(), c.config);
    imager->set_gains(queue(), source.data().gains());
    source.add();
    correlate::Sums sums;
    source.correlator().finish(queue(), sums);
    test::OnQueue on_queue(queue());
    VisInput wanted_input;
    wanted_input.sums = on_queue(sums.integer.data(), std::ssize(sums.integer));
    wanted_input.counts = on_queue(sums.counts.data(), std::ssize(sums.counts));
    wanted_input.n_spectra = sums.n_spectra;
    Images wanted;
    imager->execute(queue(), wanted_input, wanted);
    for (int dump = 0; dump < 3; ++dump) {
      source.add();
      const VisInput input = source.on_device();
      ASSERT_NE(input.tiles, nullptr);
      Images found = test::garbage_images();
      imager->execute(queue(), input, found);
      EXPECT_EQ(found.weights, wanted.weights) << "dump " << dump;
      ASSERT_EQ(std::memcmp(found.pixels.data(), wanted.pixels.data(), wanted.pixels.size() * 4), 0)
          << name(format) << " dump " << dump;
    }
  }
}

TEST_F(CudaAllSky, ImagesADumpBeyondInt32) {
  AllSkyCase c = station(20, 40, 1000);
  c.lost = 0;
  c.config.path = Path::vis_grid;
  Correlated source(queue(), c);
  auto imager = make_vis_imager(queue(), c.config);
  imager->set_gains(queue(), source.data().gains());
  source.add();
  Images wanted;
  imager->execute(queue(), source.on_device(), wanted);
  for (int gulp = 0; gulp < 70; ++gulp) source.add();  // 70 000 spectra: folded once
  const VisInput input = source.on_device();
  ASSERT_EQ(input.tiles, nullptr);
  Images found;
  imager->execute(queue(), input, found);
  test::expect_same_images({found.pixels, wanted.weights, wanted.n_spectra}, wanted, c.config,
                           Path::vis_grid, {1e-6, 1e-5}, "70 equal gulps have the mean of one");
  source.add();
  imager->execute(queue(), source.on_device(), found);
  EXPECT_EQ(std::memcmp(found.pixels.data(), wanted.pixels.data(), wanted.pixels.size() * 4), 0)
      << "a dump after one that was folded";
}

// T-EP-01 on the device: transforming every spectrum and gridding the correlation with correlated
// functions give the same images. Boxes below and above 64 columns, and one that wraps.
TEST_F(CudaAllSky, EfieldEqualsGriddedVisibilities) {
  for (const double extent : {24.0, 50.0, 75.0, 118.0, 190.0}) {
    for (const std::int64_t support : {5, 7, 8}) {
      AllSkyCase c = station(200, extent, 150);
      c.config.function.support = support;
      c.config.allow_wrap = true;
      c.lost = extent < 60 ? 0.05 : 0;
      const std::string what = c.label + ", support " + std::to_string(support);
      Correlated source(queue(), c);
      source.add();
      AllSkyConfig config = c.config;
      config.path = Path::vis_grid;
      config.function.correlated = true;
      auto gridded = make_vis_imager(queue(), config);
      gridded->set_gains(queue(), source.data().gains());
      Images wanted;
      gridded->execute(queue(), source.on_device(), wanted);
      config.path = Path::efield;
      auto imager = make_field_imager(queue(), config);
      imager->set_gains(queue(), source.data().gains());
      Images found = test::garbage_images();
      imager->execute(queue(), source.field());
      imager->finish(queue(), found);
      test::expect_same_images(found, wanted, config, Path::efield, {1e-6, 1e-5}, what);
      Images again;
      imager->execute(queue(), source.field());
      imager->finish(queue(), again);
      EXPECT_EQ(std::memcmp(found.pixels.data(), again.pixels.data(), found.pixels.size() * 4), 0)
          << what << ": not bit-identical for a fixed plan";
    }
  }
}

// The same with an aperture for every antenna and polarization, sizes that the reference would take
// long for. Sums of more spectra than a batch, tiles with hundreds of antennas, one box that wraps.
TEST_F(CudaAllSky, EfieldEqualsGriddedVisibilitiesOfApertures) {
  for (const double extent : {24.0, 75.0, 190.0}) {
    AllSkyCase c = station(150, extent, 150);
    test::give_apertures(c.config, 10);
    c.config.allow_wrap = true;
    c.lost = extent < 60 ? 0.05 : 0;
    c.label += ", apertures";
    Correlated source(queue(), c);
    source.add();
    AllSkyConfig config = c.config;
    config.path = Path::vis_grid;
    auto gridded = make_vis_imager(queue(), config);
    EXPECT_EQ(gridded->implementation(), "cuda");
    gridded->set_gains(queue(), source.data().gains());
    Images wanted;
    gridded->execute(queue(), source.on_device(), wanted);
    config.path = Path::efield;
    auto imager = make_field_imager(queue(), config);
    EXPECT_EQ(imager->implementation(), "cuda");
    imager->set_gains(queue(), source.data().gains());
    Images found = test::garbage_images();
    imager->execute(queue(), source.field());
    imager->finish(queue(), found);
    test::expect_same_images(found, wanted, config, Path::efield, {1e-6, 1e-5}, c.label);
    Images again;
    imager->execute(queue(), source.field());
    imager->finish(queue(), again);
    EXPECT_EQ(std::memcmp(found.pixels.data(), again.pixels.data(), found.pixels.size() * 4), 0)
        << c.label << ": not bit-identical for a fixed plan";
  }
}

#endif  // RYLE_HAVE_CUDA

}  // namespace
}  // namespace ryle::image
