"""The frame of an archive, looked through before anything reads it: tar's own headers, and all between them.

Python's tarfile takes in a header of any length as a whole, and follows one that announces another without an
end. An archive of ours has plain files and nothing else, each at most with one header of a longer name or
size, and zeros wherever nothing stands.
"""

from __future__ import annotations

import tarfile
from typing import IO

BLOCK = tarfile.BLOCKSIZE
MOST_HEADER = 1 << 16
"""Bytes of a header that says a longer name: more than any system allows."""
_PIECE = 1 << 20
_SAYS = frozenset((b"path", b"size"))


class Strange(tarfile.TarError):
    """Something that no archive of ours has; in words for a person."""


def look_through(raw: IO[bytes], most: int) -> None:
    """See that a file is such an archive of at most so many members. TarError, among them Strange, says what
    it is instead."""
    at, said, number = 0, dict[bytes, bytes](), 0
    while True:
        raw.seek(at)
        block = raw.read(BLOCK)
        if not block.strip(b"\0"):
            break
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if block[148:156] != b"%06o\0 " % member.chksum:  # numbers may be written in several ways
            raise Strange(f"a header was changed, at byte {at}")
        size = member.size
        if member.type == tarfile.XHDTYPE and not said and 0 < size <= MOST_HEADER:
            said = _extended(raw.read(size))
        elif member.type == tarfile.REGTYPE:
            size = _number(said.get(b"size", b"%d" % size))
            said, number = {}, number + 1
        else:
            raise Strange(f"it holds more than files, at byte {at}")
        if size < 0 or number > most:
            raise Strange("it holds too many files, or one without a size")
        end = at + BLOCK + size
        at = end + -size % BLOCK
        raw.seek(end)
        if raw.read(at - end).strip(b"\0"):
            raise Strange(f"something stands between its files, at byte {end}")
    raw.seek(at)
    while piece := raw.read(_PIECE):
        if piece.strip(b"\0"):
            raise Strange(f"something stands behind its files, at byte {at}")
    raw.seek(0)


def _extended(data: bytes) -> dict[bytes, bytes]:
    """What a header says for the file behind it: `LENGTH KEY=VALUE` and a newline each."""
    said: dict[bytes, bytes] = {}
    while data:
        length = _number(data.partition(b" ")[0])
        row, data = data[:length], data[max(length, 1) :]
        key, has, value = row.partition(b" ")[2].removesuffix(b"\n").partition(b"=")
        if len(row) != length or not row.endswith(b"\n") or not has or key not in _SAYS or key in said:
            raise Strange("one of its headers cannot be read")
        said[key] = value
    return said


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise Strange("one of its headers cannot be read")
    return int(text)
