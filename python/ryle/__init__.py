# SPDX-License-Identifier: BSD-3-Clause
"""Ryle: what radio telescopes deliver, into what astronomers use.

Functions on arrays of NumPy: `channelize`, `correlate`, `beamform`, `dedisperse`, `search`, `fold`, `image`, `grid`; behind
each a plan for streams. `Observation` runs an observation file; `open` reads every file that `ryle info` knows.
Nothing is copied or converted in silence: an array of the wrong type or order is an error that names the call which makes
the right one. Calls release the GIL, and Ctrl-C ends them.
"""

from . import _ryle
from ._arrays import complex_codes, complex_int8, complex_int16, to_complex
from ._beamform import Beamformer, Beams, beamform
from ._calibrate import Gains, calibrate, solve_gains
from ._correlate import Correlator, Visibilities, correlate
from ._errors import ConfigError, DataError, DeviceError, Error, UnsupportedError
from ._files import (Contents, Filterbank, FitsImage, ImageCube, Recording, Scans, VisibilityFile, open, open_recording, read,
                     read_visibilities, write)
from ._grid import Gridder, Map, grid
from ._image import Image, SkyImager, image, image_samples
from ._layout import Layout, read_layout
from ._observation import Observation
from ._search import Candidates, Dedispersed, Dedisperser, Fold, dedisperse, dm_trials, fold, search
from ._spectra import Channelizer, Spectra, channelize, spectra
from ._stream import BeamBlock, Candidate, Stream

__version__: str = _ryle.version()

__all__ = [
    "BeamBlock", "Beamformer", "Beams", "Candidate", "Candidates", "Channelizer", "ConfigError", "Contents", "Correlator", "DataError", "Dedispersed",
    "Dedisperser", "DeviceError", "Error", "Filterbank", "FitsImage", "Fold", "Gains", "Gridder", "Image", "ImageCube", "Layout", "Map", "Observation",
    "Recording", "Scans", "SkyImager", "Spectra", "Stream", "UnsupportedError", "Visibilities", "VisibilityFile", "beamform", "calibrate", "channelize",
    "complex_codes", "complex_int8", "complex_int16", "correlate", "dedisperse", "dm_trials", "fold", "grid", "image",
    "image_samples", "implementations", "open", "open_recording", "read", "read_layout", "read_visibilities", "search", "solve_gains", "spectra", "to_complex",
    "write",
]


def implementations() -> dict[str, list[str]]:
    """Names that `implementation` of each engine takes here, the best first.

    Examples
    --------
    >>> import ryle
    >>> sorted(ryle.implementations())
    ['beamform', 'calibrate', 'channelize', 'correlate', 'grid', 'image', 'search']
    """
    return {"channelize": _ryle.channelize_implementations(), "correlate": _ryle.correlate_implementations(),
            "beamform": _ryle.beamform_implementations(), "calibrate": _ryle.calibrate_implementations(),
            "search": _ryle.search_implementations(),
            "image": _ryle.image_implementations(), "grid": _ryle.grid_implementations()}
