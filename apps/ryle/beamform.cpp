// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "apps/ryle/command.hpp"
#include "apps/ryle/key_options.hpp"
#include "apps/ryle/recording_arguments.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/pipeline/beam/recorded_beams.hpp"

namespace ryle::app {
namespace {

struct BeamformArguments {
  RecordingArguments recording;
  pipeline::RecordedBeamsOptions beams;
};

int run_beamform(const Context& context, const BeamformArguments& a) {
  Overrides set = recording_overrides(a.recording);
  set.add(a.recording.overrides);
  const auto config = pipeline::parse_observation("schema = 1\n", "command line", set.list());
  pipeline::RunOptions options;
  options.command_line = context.command_line();
  options.stop = &signal_count();
  ProgressPrinter progress(context);
  options.on_progress = [&](const pipeline::Progress& p) { progress.show(p); };
  const auto summary = pipeline::beamform_recording(config, a.beams, options);
  progress.finish();
  fmt::print("{}", context.json ? to_json(summary) + "\n" : to_text(summary));
  return 0;  // stopped, too: what was whole is published (docs/exit-codes.md)
}

}  // namespace

void add_beamform(CLI::App& app, Context& context) {
  auto* sub = app.add_subcommand(
      "beamform", "form beams of a recording: voltages in, filterbanks or voltages of beams out");
  auto a = std::make_shared<BeamformArguments>();
  auto& b = a->beams;
  add_recording_files(*sub, a->recording);
  sub->add_option("--beams", b.beams, "beams file (TOML): array, directions, gains")->required();
  sub->add_option(
         "-o,--output", b.outputs,
         "NAME.fil, NAME.vdif (NAME_BEAM.* with several beams), NAME.h5, or udp://host:port "
         "for SPEAD heaps of voltages (repeatable)")
      ->required();
  sub->add_option("--products", b.output,
                  "power, stokes-i, stokes-iquv or voltage; default: by files and polarizations");
  sub->add_option("--values", b.format,
                  "f32 f16 u16 u8 of powers, cf32 cf16 ci8 ci4 of voltages; default f32, VDIF ci8");
  sub->add_option("--integration", b.integration, "spectra per value")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  sub->add_option("--first-channel", b.first_channel, "first channel of the spectra that is used")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--use-channels", b.n_channels, "number of channels used; default all")
      ->check(number_in(1, 1e7));
  sub->add_option("--update", b.update_s,
                  "seconds between sets of weights; default: phases turn by 1 deg at most")
      ->check(number_above_zero());
  sub->add_option("--scale", b.scale_s, "seconds between scales of u8 and u16; 0 = never changed")
      ->capture_default_str()
      ->check(number_from_zero());
  sub->add_option("--fine-channels", b.fine_channels,
                  "channels made of every channel, after the beam; 1 = none")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  sub->add_option("--fine-taps", b.fine_taps, "polyphase taps of these")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  KeyOptions options(*sub, "beams", KeyOptions::Checks::all);
  pipeline::fields(options, static_cast<pipeline::BeamSettings&>(b));
  add_recording_options(*sub, a->recording);
  add_key_options(*sub, a->recording, pipeline::kPlaceOptions);
  add_common(*sub, context);
  sub->callback(
      [&context, a] { context.action = [&context, a] { return run_beamform(context, *a); }; });
}

}  // namespace ryle::app
