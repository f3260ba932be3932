"""Banks for the tests of the store: made with a fixed clock, written to, looked at by plain git."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from banks import Copies

from ua_memory import config as settings
from ua_memory.knowledge import facts
from ua_memory.knowledge.facts import Provenance
from ua_memory.markdown import document as markdown
from ua_memory.records import Fact
from ua_memory.store.draft import Result
from ua_memory.store.store import Store
from ua_memory.upkeep import init as bank

NOW = datetime(2026, 11, 21, 14, 32, tzinfo=UTC)
DAY = "memory/2026-11-21.md"
ROOT = Path(__file__).parent.parent
GIT = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "core.hooksPath=/dev/null"]


def clock() -> datetime:
    return NOW


def make(root: Path, person: bool = True) -> Store:
    """A bank at `root` with a fixed clock; the person's name is Ann."""
    if person:
        name_person()
    if root.exists():
        bank.init(root, clock)
    else:
        copied(root, "new", lambda folder: bank.init(folder, clock))
    return open_again(root)


def name_person() -> None:
    """Tell git that the person's name is Ann."""
    config = Path(os.environ["GIT_CONFIG_GLOBAL"])
    if "Ann" not in config.read_text():
        with config.open("a") as file:
            file.write("[user]\n\tname = Ann\n\temail = ann@example.org\n")


def copied(folder: Path, how: str, fill: Callable[[Path], object]) -> None:
    """Make `folder` as `fill(folder)` does, by a copy of what that made before under the same name `how`:
    `init` runs git nine times, and each insert three times. Absolute paths in git's own files follow."""
    if how not in _MADE:
        with tempfile.TemporaryDirectory(prefix="ua-bank-") as made:
            fill(Path(made).resolve() / "made")
            _MADE[how] = Copies(Path(made).resolve() / "made")
    _MADE[how].to(folder)


_MADE: dict[str, Copies] = {}


def open_again(root: Path) -> Store:
    return bank.open_store(root, settings.load(root, {}), clock)


def insert(store: Store, text: str, request: str | None = None, session: str | None = None) -> Fact:
    return facts.insert(
        store, Fact(text), Provenance(NOW, "test", "agent", session), door="test", request=request
    ).fact


def inserted(store: Store, text: str) -> Result:
    return facts.insert(store, Fact(text), Provenance(NOW, "test"), door="test").result


def write(store: Store, path: str, text: str) -> None:
    """A person's save, in place."""
    file = store.bank.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))


def texts(data: bytes, path: str = DAY) -> list[str]:
    return [f.text for f in markdown.parse(data, path).of(Fact)]


def on_disk(store: Store, path: str = DAY) -> list[str]:
    file = store.bank.root / path
    return texts(file.read_bytes(), path) if file.exists() else []


def in_trail(store: Store, path: str = DAY) -> list[str]:
    return texts(store.history.read("HEAD", path) or b"", path)


def git(where: Path, *words: str, ok: bool = True, env: dict[str, str] | None = None) -> str:
    """Plain git as a person runs it."""
    done = subprocess.run(
        ["git", *GIT, *words],
        cwd=where,
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        check=False,
    )
    assert not ok or done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def first_author(store: Store, needle: str, path: str = DAY) -> str:
    """Who made the commit in which a text first appears in a file of the trail."""
    for revision in reversed(store.history.log([path])):
        if needle.encode() in (store.history.read(revision.id, path) or b""):
            return revision.author
    return ""


def leftovers(store: Store) -> list[str]:
    """Names beside the files that are ours, and records that wait."""
    root = store.bank.root
    beside = [
        p.name for p in (*root.glob(".ua-*"), *(root / "memory").rglob(".ua-*")) if p.name != ".ua-memory"
    ]
    waiting = [p.name for p in store.bank.pending.iterdir()] if store.bank.pending.exists() else []
    return [*beside, *waiting]


def python(code: str, *arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """A child process that runs `code` with the tests' folder and the checkout on its path."""
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(children: Sequence[subprocess.Popen[str]], seconds: float = 60) -> list[str]:
    """Wait for children that must succeed; what they printed."""
    out = []
    for child in children:
        said, trouble = child.communicate(timeout=seconds)
        assert child.returncode == 0, trouble
        out.append(said)
    return out
