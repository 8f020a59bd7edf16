# SPDX-License-Identifier: BSD-3-Clause
"""What the library raises, with the message of the program and its exit code (docs/exit-codes.md)."""


class Error(Exception):
    """Base of every exception of Ryle.

    Attributes
    ----------
    exit_code : int
        What the program `ryle` would have ended with.
    """

    exit_code: int = 70


class ConfigError(Error, ValueError):
    """A wrong or impossible configuration: raised when a plan is made."""

    exit_code = 78


class DataError(Error, ValueError):
    """A file that cannot be read or written, or is not what its format says."""

    exit_code = 65


class DeviceError(Error, RuntimeError):
    """A device is missing or has failed, or an array lies on one that cannot be used here."""

    exit_code = 69


class UnsupportedError(Error):
    """Something that this build or machine cannot do; the message lists what would work."""

    exit_code = 69
