"""A daemon's own code: what counts as another."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import pytest

from ua_memory.daemon import server as code


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of which `index.here` is loaded, and `index.there` is not."""
    root = tmp_path / "ua_memory"
    (root / "index").mkdir(parents=True)
    for name in ("__init__.py", "index/__init__.py", "index/here.py", "index/there.py"):
        (root / name).write_text("")
    monkeypatch.setattr(code, "PACKAGE", str(root))
    monkeypatch.setattr(code, "CODE_CHECK_INTERVAL", -1.0)
    monkeypatch.setitem(sys.modules, "ua_memory.index.here", types.ModuleType("here"))
    return root


def test_a_module_that_was_written_over(package: Path) -> None:
    known = code.CodeVersion()
    assert not known.changed()
    os.utime(package / "index", ns=(1, 1))
    (package / "index" / "there.pyc").write_text("")
    (package / "index" / "__pycache__").mkdir()
    assert not known.changed(), "what Python leaves there is no code"
    with (package / "index" / "here.py").open("a") as opened:
        opened.write("x = 1\n")
    assert known.changed()


def test_an_installation(package: Path) -> None:
    """pip takes the old files away and puts new ones in their places, loaded or not."""
    for name in ("there.py", "more.py"):
        known = code.CodeVersion()
        (package / "fresh.py").write_text("x = 1\n")
        (package / "fresh.py").replace(package / "index" / name)
        assert known.changed()
    known = code.CodeVersion()
    (package / "index" / "there.py").unlink()
    assert known.changed()
