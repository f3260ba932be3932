"""What a process gives back of its memory, and goes on with afterwards."""

from __future__ import annotations

import functools
import mmap
import os
import re
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import pytest

from ua_memory.index import embedding as heap
from ua_memory.text import tokens

DISK = Path("/var/tmp")
"""The pages of what lies in memory have nowhere to go."""


def resident(name: str) -> int:
    """Kilobytes of a mapped file that are in memory."""
    here = found = 0
    for row in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in row.partition(" ")[0]:
            here = name in row
        elif here and row.startswith("Rss:"):
            found += int(row.split()[1])
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no such advice")
def test_the_code_of_a_library_is_let_go_of_and_read_again() -> None:
    kind = subprocess.run(["stat", "-f", "-c", "%T", DISK], capture_output=True, text=True, check=False)
    if kind.stdout.strip() in ("", "tmpfs", "ramfs"):
        pytest.skip(f"{DISK} is no folder on a disk")
    content = os.urandom(1 << 20)
    with tempfile.NamedTemporaryFile(dir=DISK, prefix="library-", suffix=".so") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        with mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as mapped:
            assert mapped[:] == content
            heap.page_out("no-such-library")
            assert resident("library-") == 1024
            heap.page_out("other", "library-")
            assert resident("library-") < 100
            assert mapped[:] == content


def test_the_table_of_tokens_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon at rest has no use for its 35 MB."""
    from tiktoken import registry

    monkeypatch.setattr(registry, "ENCODINGS", {})  # another test has asked tiktoken itself
    tokens._encoder.cache_clear()
    assert (many := tokens.count("told once more")) and tokens._encoder.cache_info().currsize == 1
    heap.clear_caches()
    assert not tokens._encoder.cache_info().currsize and not registry.ENCODINGS
    assert tokens.count("told once more") == many


def test_nothing_of_a_library_keeps_it_from_being_let_go_of() -> None:
    """An embedding function's library may have any of these; the daemon's one thread does this."""
    proxy = weakref.proxy(gone := type("Gone", (), {})())
    del gone
    theirs = functools.lru_cache(re.compile("a").match)
    theirs("a")
    tokens.count("told")
    heap.clear_caches()
    assert not tokens._encoder.cache_info().currsize and theirs.cache_info().currsize == 1
    del proxy
