// SPDX-License-Identifier: BSD-3-Clause
// What all VOEvents of Ryle share (VOEvent 2.0, IVOA recommendation 2011). Private to io/.
#pragma once
#include <cstdint>
#include <string>

#include "ryle/telescope/geometry.hpp"

namespace ryle::io {

/// Text for XML: markup as entities, control characters left out.
std::string xml_text(const std::string& text);

/// One Param of the What part; nothing for a number that is not finite.
std::string voevent_parameter(const char* name, double value, const char* unit, const char* ucd);

/// Who and where an event is of.
struct VoEventFrame {
  bool observation = false;  ///< role "observation", else "test": nobody points a telescope at it
  std::string telescope;
  std::int64_t tai_ns = 0;         ///< of the event; 0 = not known: rejected
  std::int64_t author_tai_ns = 0;  ///< when it was written; 0 = the time of the event
  std::int64_t number = 0;         ///< makes the IVORN unique
  double time_error_s = 0;         ///< 0 = not said
  SkyDirection position;
  double position_error_rad = 0;  ///< must be above 0: readers point telescopes by it
};

/// The whole event round `what` (Params and groups) and `why` (may be empty). Throws ConfigError
/// for an event without an instant or without an error radius.
std::string voevent_document(const VoEventFrame& frame, const std::string& what,
                             const std::string& why);

}  // namespace ryle::io
