"""Banks for tests: a fixed clock, real git, the store of a bank, and git run on the trail or a repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import guards

from ua_memory import config
from ua_memory.git.repository import SOMEBODY, Repository
from ua_memory.knowledge import facts, statements
from ua_memory.knowledge.facts import InsertResult, Provenance
from ua_memory.records import Fact
from ua_memory.store.store import Store
from ua_memory.upkeep import init as bank

World = frozenset[tuple[str, str]]
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = "memory/2026-11-21.md"


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at

    def later(self, **delta: float) -> None:
        self.at += timedelta(**delta)


@dataclass
class Bank:
    """A bank on disk with the store that a door would have, and words for what tests do with it."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.again()

    def again(self, **settings: Any) -> Store:
        """Open the store anew, as another process would; `settings` replace those of the file."""
        self.store = bank.open_store(self.root, replace(config.load(self.root, {}), **settings), self.clock)
        return self.store

    def path(self, path: str = DAY) -> Path:
        return self.root / path

    def bytes(self, path: str = DAY) -> bytes:
        return self.path(path).read_bytes()

    def text(self, path: str = DAY) -> str:
        return self.bytes(path).decode()

    def write(self, text: str | bytes, path: str = DAY) -> None:
        """Save a file as an editor does, without telling anyone."""
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def edit(self, old: str, new: str, path: str = DAY) -> None:
        """Change a file by hand."""
        assert old in self.text(path), self.text(path)
        self.write(self.text(path).replace(old, new, 1), path)

    def insert(self, text: str, **more: Any) -> InsertResult:
        """Insert a fact as the client `test`; keywords of `Fact` and `Provenance`, `request` and `equal`."""
        options = {key: more.pop(key) for key in ("request", "equal") if key in more}
        said = {key: more.pop(key) for key in ("client", "origin", "session") if key in more}
        return facts.insert(
            self.store,
            Fact(text, **more),
            Provenance(**{"at": self.clock(), "client": "test", **said}),
            door="test",
            **options,
        )

    def find(self, block: str | None) -> Fact:
        found = statements.find(self.store, str(block))
        assert isinstance(found, Fact)
        return found

    def log(self) -> list[tuple[str, str, str]]:
        """(author, Memory-Op, subject) of every revision, newest first."""
        return [(r.author, r.trailer("Memory-Op"), r.subject) for r in self.store.history.log()]

    def ops(self) -> list[str]:
        return [op for _, op, _ in self.log()]

    def clean(self) -> bool:
        """Whether the trail has every file as it is on disk, nothing held, nothing owed."""
        seen = self.store.survey()
        owed = self.store.bank.pending
        return not seen.changed and not seen.held and not (owed.is_dir() and list(owed.iterdir()))


def new_bank(root: Path, clock: Clock | None = None, timezone: str = "UTC") -> Bank:
    """A bank made by `init` in a new folder."""
    clock = clock or Clock()

    def init(there: Path) -> None:
        bank.init(there, clock, timezone=timezone, door="test")

    founded(root, f"{clock()} {timezone}", init)
    return Bank(root.resolve(), clock)


def founded(root: Path, how: str, init: Callable[[Path], object]) -> None:
    """Make `root` a bank as `init(root)` does, by a copy of what it made before under the same name `how`.

    `init` runs git eight times, a copy never. All copies have one id: a test gets one, its other banks are
    made. So are those of a test that changed the environment before, and where something is there already.
    """
    test, world = os.environ["HOME"], _world()
    if (
        not guards.FOLDERS
        or (test, how) in _GIVEN
        or world is None
        or (root.exists() and any(root.iterdir()))
    ):
        init(root)
        return
    _GIVEN.add((test, how))
    if (how, world) not in _MADE:
        # In a folder that is new: what failed half-way is not met again.
        made = Path(mkdtemp(dir=guards.FOLDERS[0])) / "bank"
        init(made)
        _MADE[how, world] = Copies(made)
    _MADE[how, world].to(root)


class Copies:
    """Copies of a folder as it is now, written from memory: `shutil.copytree` takes three times as long.
    Absolute paths in git's own files follow."""

    def __init__(self, folder: Path) -> None:
        self._made = folder
        self._folders: list[tuple[str, int]] = []
        self._files: list[tuple[str, int, int, bytes]] = []
        self._links: list[tuple[str, str]] = []
        for path in (folder, *sorted(folder.rglob("*"))):
            name, stat = str(path.relative_to(folder)), path.lstat()
            if path.is_symlink():
                self._links.append((name, str(path.readlink())))
            elif path.is_dir():
                self._folders.append((name, stat.st_mode & 0o777))
            else:
                data = path.read_bytes()
                self._files.append((name, stat.st_mode & 0o777, stat.st_mtime_ns, data))

    def to(self, root: Path) -> None:
        was, new, top = bytes(self._made), bytes(root.resolve()), f"{root}/"
        for name, mode in self._folders:
            os.makedirs(top + name, mode, exist_ok=True)  # noqa: PTH103 (a tenth of the time)
        for name, mode, modified, data in self._files:
            if was in data and name.endswith(("config", "gitdir", ".git")):
                data = data.replace(was, new)
            file = os.open(top + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            os.write(file, data)
            os.utime(file, ns=(modified, modified))
            os.close(file)
        for name, target in self._links:
            Path(top + name).symlink_to(target)


_MADE: dict[tuple[str, World], Copies] = {}
_GIVEN: set[tuple[str, str]] = set()


def _world() -> World | None:
    """What of the environment a new bank may depend on, None where git was given settings."""
    config = Path(os.environ.get("GIT_CONFIG_GLOBAL", os.devnull))
    if not config.exists() or config.stat().st_size:
        return None
    paths = ("HOME", "XDG_", "GIT_CONFIG_GLOBAL", "PYTEST_")  # a test's own folders, and its name
    return frozenset((key, value) for key, value in os.environ.items() if not key.startswith(paths))


def asked_once(person: Callable[[Repository], tuple[str, str]]) -> Callable[[Repository], tuple[str, str]]:
    """`Repository.person` that runs git once for the same environment and settings, and not in each bank."""
    known: dict[object, tuple[str, str]] = {}

    def remembered(self: Repository) -> tuple[str, str]:
        if self._person is None and (world := _world()):
            files = [folder / "config" for folder in (self.git_dir, self.shared)]
            told = [file.read_bytes() for file in files if file.is_file()]
            key = world, *(text for text in told if re.search(rb"(?i)user|author|include", text))
            if key not in known:
                found = person(self)
                # Git could not say. Only where nobody is named anywhere will it never.
                named = any(name.startswith(("GIT_AUTHOR", "GIT_COMMITTER", "EMAIL")) for name, _ in world)
                if self._person is None and (named or len(key) > 1):
                    return found
                known[key] = found
            if known[key] == SOMEBODY:
                return SOMEBODY
            self._person = known[key]
        return person(self)

    return remembered


Repository.person = asked_once(Repository.person)  # type: ignore[method-assign]


def git(folder: Path, *words: str, **more: Any) -> str:
    """Run git in a folder as a person would; its standard output."""
    names = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env={**os.environ, **names},
        check=True,
        capture_output=True,
        text=True,
        **more,
    )
    return done.stdout


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """Somebody's git repository with one commit of these files (none: no commit either)."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if files:
        git(folder, "add", "-A")
        git(folder, "commit", "--quiet", "-m", "first")
    return folder


Equal = Callable[[str], list[str]]


def everywhere(bank: Bank) -> Equal:
    """What the index would say of an equal text, read from the files themselves."""
    from ua_memory.markdown import document as markdown

    def equal(text: str) -> list[str]:
        found = []
        for stat in bank.store.files():
            found += markdown.parse(bank.store.accepted_bytes(stat.path), stat.path).of(Fact)
        return [fact.place.path for fact in found if fact.text == text]

    return equal
