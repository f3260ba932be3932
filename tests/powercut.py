"""A disk that forgets at a power cut what was not fsynced: names come back, bytes go.

It is told of each step before it happens, keeps what is needed to take it back, and forgets that at an fsync.
Stricter than most file systems are: a new file's name is durable only by an fsync of its folder. What C code
writes (git with `core.fsync=all`, SQLite) counts as durable.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ua_memory.store import swap

REAL = {name: getattr(os, name) for name in ("open", "link", "rename", "unlink", "mkdir", "rmdir")}
"""As they are before a test makes them count themselves."""
exchange = swap.exchange
Undo = Callable[[], object]


class Disk:
    """Everything below `root` but git's own files. `kept` is a folder beside it, for what was removed."""

    def __init__(self, root: Path) -> None:
        self.root, self.kept = root, root.with_name(f"{root.name}.kept")
        self.owed: list[tuple[Path, Undo]] = []
        """What is not durable of each folder's names, in order: (folder, how to take it back)."""
        self.durable: dict[int, bytes] = {}
        """What is durable of each file that was written to, by inode."""
        self._number = 0

    def does(self, name: str, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Carry out one step, and remember how to take it back."""
        watch = getattr(self, f"_{name}", None)
        if watch is None or "dir_fd" in named or not (name == "fsync" or self._ours(args)):
            return call(*args, **named)
        return watch(lambda: call(*args, **named), *args)

    def cut(self, torn: bool) -> None:
        """Take back what was not fsynced; with `torn` half of the bytes that were not have arrived."""
        for _, undo in reversed(self.owed):
            with contextlib.suppress(OSError):
                undo()
        for file in self._files():
            now, then = file.read_bytes(), self.durable.get(file.stat().st_ino)
            if then is None or now == then:
                continue
            begun = then if now.startswith(then) else b""
            file.write_bytes(now[: (len(begun) + len(now)) // 2] if torn else then)

    def _ours(self, args: tuple[Any, ...]) -> bool:
        paths = [Path(os.fsdecode(each)) for each in args if isinstance(each, str | bytes | os.PathLike)]
        inside = [each.relative_to(self.root).parts for each in paths if each.is_relative_to(self.root)]
        return len(inside) == len(paths) and all(
            parts[:1] != (".git",) or parts[1:2] == ("ua-memory",) for parts in inside
        )

    def _files(self) -> Iterator[Path]:
        for folder, _, names in os.walk(self.root):
            yield from (Path(folder, name) for name in names if self._ours((Path(folder, name),)))

    def _owe(self, path: Any, undo: Undo) -> None:
        self.owed.append((Path(path).parent, undo))

    def _keep(self, path: Any) -> Path | None:
        """A second name for what is about to lose its own: it stays, and its inode is not used again."""
        self._number += 1
        copy = self.kept / str(self._number)
        with contextlib.suppress(FileExistsError):
            REAL["mkdir"](self.kept)
        try:
            REAL["link"](path, copy)
        except OSError:
            return None
        return copy

    def _open(self, call: Callable[[], int], path: Any, flags: int, *_: Any) -> int:
        if not flags & (os.O_WRONLY | os.O_RDWR):
            return call()
        there = Path(path).exists()
        if there:
            self.durable.setdefault(Path(path).stat().st_ino, Path(path).read_bytes())
        fd = call()
        # Held, the inode of a deleted file is not given to one of git's, which would be torn in its place.
        REAL["open"](f"/proc/self/fd/{fd}", os.O_PATH)
        if not there:
            self.durable[os.fstat(fd).st_ino] = b""
            self._owe(path, lambda: REAL["unlink"](path))
        return fd

    def _fsync(self, call: Callable[[], None], fd: int) -> None:
        call()
        about = os.fstat(fd)
        here = Path(f"/proc/self/fd/{fd}")
        if stat.S_ISDIR(about.st_mode):
            folder = here.readlink()
            self.owed = [(each, undo) for each, undo in self.owed if each != folder]
        elif about.st_ino in self.durable:
            self.durable[about.st_ino] = here.read_bytes()

    def _rename(self, call: Callable[[], None], old: Any, new: Any) -> None:
        if swap.same_file(Path(old), Path(new)):
            call()
            return
        lost = self._keep(new)
        call()

        def undo() -> None:
            REAL["rename"](new, old)
            if lost:
                REAL["rename"](lost, new)

        self._owe(new, undo)

    _replace = _rename

    def _link(self, call: Callable[[], None], _: Any, new: Any) -> None:
        call()
        self._owe(new, lambda: REAL["unlink"](new))

    def _unlink(self, call: Callable[[], None], path: Any) -> None:
        lost = self._keep(path)
        call()
        if lost:
            self._owe(path, lambda: REAL["rename"](lost, path))

    def _mkdir(self, call: Callable[[], None], path: Any, *_: Any) -> None:
        call()
        self._owe(path, lambda: REAL["rmdir"](path))

    def _exchange(self, call: Callable[[], None], one: Path, other: Path) -> None:
        call()
        self._owe(one, lambda: exchange(one, other))
