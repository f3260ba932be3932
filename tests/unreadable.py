"""Files and folders that may not be read, also where tests run as root, which may read everything."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_VERSION, _OVERRIDES = 0x20080522, (1 << 1) | (1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


@contextmanager
def unreadable(*files: Path) -> Iterator[None]:
    """In the block nobody may read these, this thread included; git and other processes of root's may."""
    modes = {file: file.stat().st_mode & 0o777 for file in files}
    caps = _capabilities() if os.geteuid() == 0 else None
    try:
        for file in files:
            file.chmod(0)
        if caps is not None:
            _set(caps[0] & ~_OVERRIDES, *caps[1:])
        yield
    finally:
        if caps is not None:
            _set(*caps)
        for file, mode in modes.items():
            file.chmod(mode)


def _capabilities() -> tuple[int, ...]:
    """Effective, permitted and inheritable ones, and the same of those above 32."""
    if sys.platform != "linux":
        pytest.skip("root reads everything here")
    data = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capget((ctypes.c_uint32 * 2)(_VERSION, 0), data) == 0
    return tuple(data)


def _set(*caps: int) -> None:
    assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)(*caps)) == 0
