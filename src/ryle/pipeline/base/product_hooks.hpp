// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <functional>
#include <string>

/// Products of a run on their way to someone in the same process, beside their files.
namespace ryle {

struct Observation;
struct SearchCandidate;
struct SkyImage;
struct VisibilityDump;

namespace pipeline {

struct BeamChunk;
struct BeamStream;

using DumpHook = std::function<void(const VisibilityDump&, const Observation&)>;
using ImageHook = std::function<void(const SkyImage&, const Observation&)>;
using BeamHook = std::function<void(const BeamChunk&, const BeamStream&)>;
/// Told of every candidate (no flags) and the name of its beam, on the thread of the search.
using CandidateHook = std::function<void(const SearchCandidate&, const std::string& beam)>;

/// Each is called with every product of its kind once that is in its files, or is empty. A call
/// that waits holds up the thread that makes the products: the writer of visibilities or images,
/// the search, of beams the engine. In a run of a recording that is back-pressure. In a live run
/// the queue before that thread fills, and data are dropped: a hook there must not wait.
struct ProductHooks {
  DumpHook on_dump;
  ImageHook on_image;
  BeamHook on_beams;
  CandidateHook on_candidate;
};

}  // namespace pipeline
}  // namespace ryle
