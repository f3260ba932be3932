"""Opening a file that somebody named: a regular one, or a link to one.

A named pipe, a device or a socket may have no end, or nobody who writes to it: who reads it waits for ever.
The file is opened first, without waiting, and then asked what it is: between a look and an opening it could
become another. What is refused is an OSError, so it is reported as any other file that cannot be read.

It stands by itself, without `pathlib`, since hooks open files too.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import BinaryIO

MOST = 64 << 20
"""Bytes of a file that is read whole, where nothing else is said."""
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Irregular(OSError):
    """What is neither a regular file nor a folder."""


def opener(name: str, flags: int) -> int:
    """For `open(…, opener=opener)`: as `os.open`, but OSError for all that is no regular file."""
    try:
        fd = os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # how Linux and macOS refuse to open a socket
            raise Irregular(errno.EINVAL, "not a regular file", name) from error
        raise
    mode = stat.S_IFMT(os.fstat(fd).st_mode)
    if mode == stat.S_IFREG:
        return fd
    os.close(fd)
    if mode == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    raise Irregular(errno.EINVAL, f"{_KINDS.get(mode, 'something else')}, not a regular file", name)


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file's bytes. OSError where it is none, or cannot be read."""
    return open(path, "rb", opener=opener)


def read(path: str | os.PathLike[str], most: int = MOST) -> bytes:
    """All of a regular file. OSError also where it holds more bytes than `most`."""
    with opened(path) as file:
        if os.fstat(file.fileno()).st_size <= most and len(data := file.read(most + 1)) <= most:
            return data
    raise OSError(errno.EFBIG, f"larger than {most >> 20} MB", os.fspath(path))
