"""Putting pieces into clients' files and taking them out: what would change, shown, and then written.

Everything is worked out before the first byte is written, so that a file that cannot be read leaves all of
them as they were. A file is replaced at once, keeps its mode, and stays a link if it is one.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import regular
from ua_memory.errors import CannotWrite, ChangedOnDisk, Malformed, ProblemsFound

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.clients.settings import Piece, Target


@dataclass(frozen=True, slots=True)
class Step:
    """One piece and its file: the bytes that are there, and those that are to be; None is no file.

    `folder` was made for the file ('' if not) and goes with it.
    """

    file: Path
    what: str
    before: bytes | None
    after: bytes | None
    folder: str = ""

    @property
    def does(self) -> str:
        """make, change, remove or keep."""
        if self.before == self.after:
            return "keep"
        return "make" if self.before is None else "remove" if self.after is None else "change"

    def diff(self) -> str:
        from difflib import unified_diff

        old, new = (
            (each or b"").decode("utf-8", "backslashreplace").splitlines(keepends=True)
            for each in (self.before, self.after)
        )
        was, is_ = ("/dev/null" if each is None else str(self.file) for each in (self.before, self.after))
        rows = unified_diff(old, new, was, is_)
        return "".join(
            row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows
        )


def plan(pieces: Sequence[Piece], *, out: bool = False) -> list[Step]:
    """What puts the pieces in, or with `out` takes them out. Malformed names file and line.

    Of several pieces of one file each finds what the one before it left.
    """
    from ua_memory.clients.json_edit import Broken

    steps: list[Step] = []
    left: dict[Path, bytes | None] = {}
    for piece in reversed(pieces) if out else pieces:
        file = Path(piece.file)
        before = left[file] if file in left else _read(file)
        try:
            text = None if before is None else before.decode("utf-8")
            new = (piece.cut if out else piece.put)(text)
        except UnicodeDecodeError as error:
            line = (before or b"").count(b"\n", 0, error.start) + 1
            raise _malformed(file, line, "not UTF-8") from error
        except Broken as error:
            raise _malformed(file, error.line, error.why) from error
        left[file] = None if new is None else new.encode("utf-8")
        steps.append(Step(file, piece.what, before, left[file], piece.folder))
    return steps


def _malformed(file: Path, line: int, why: str) -> Malformed:
    mend = "mend that line; nothing has been changed in any file"
    return Malformed(f"cannot be read: {why}", where=f"{file}:{line}", mend=mend)


def _read(file: Path) -> bytes | None:
    try:
        return regular.read(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise CannotWrite(f"cannot be read: {getattr(error, 'strerror', error)}", where=str(file)) from error


def carry_out(steps: Iterable[Step]) -> None:
    """Write what differs. ChangedOnDisk where a file is no longer what was planned for."""
    for step in steps:
        if step.does == "keep":
            continue
        target = Path(os.path.realpath(step.file))  # a link stays one: what it leads to is replaced
        if step.after is None:
            _unchanged(step)
            target.unlink(missing_ok=True)
            _folders(step)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            opener = None if step.before is None else _owners  # ~/.claude.json holds a login
            with open(beside, "xb", opener=opener) as file:
                file.write(step.after)
                file.flush()
                os.fsync(file.fileno())
            if step.before is not None:
                shutil.copymode(target, beside)
            _unchanged(step)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)


def _owners(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _unchanged(step: Step) -> None:
    if _read(step.file) != step.before:
        raise ChangedOnDisk(
            "has just been changed by somebody else", where=str(step.file), mend="run it again"
        )


def _folders(step: Step) -> None:
    """Remove the folders that were made for a file, if nothing is left in them."""
    folder = step.file.parent
    if step.folder:  # what Python has made of our modules
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    while step.folder and (folder == Path(step.folder) or Path(step.folder) in folder.parents):
        try:
            folder.rmdir()
        except OSError:  # not empty: something else lies there, or more of ours is still to go
            return
        folder = folder.parent


def show(call: Call, target: Target, steps: list[Step], *, dry: bool = False, line: bool = False) -> None:
    """Say what was done, or with `dry` what would be, as a diff; `line` offers the one for AGENTS.md."""
    from ua_memory.cli.format import Screen, emit
    from ua_memory.clients.settings import LINE

    changed = any(step.does != "keep" for step in steps)
    notes = [*target.notes] if changed else []
    notes += [f"{TWICE}, by the {way} in {where}; {ONE_WAY}" for way, where in target.twice]
    if call.as_json:
        files = [shape(step, dry) for step in steps]
        told = {"client": target.client, "changed": changed, "dry_run": dry, "files": files, "notes": notes}
        emit(call, told | ({"line": LINE} if line else {}))
        return
    screen = Screen(call)
    if dry:
        for step in steps:
            screen.diff(step.diff())
        if not changed:
            screen.line("Nothing would change.")
        return
    if not steps:
        screen.line(f"Nothing of ua-memory is in {target.client}'s settings.")
    for step in steps:
        word = (f"{DONE[step.does]:9}", "faint" if step.does == "keep" else "good")
        screen.item([word], f"{step.what} in ", (str(step.file), "path"))
    for note in notes:
        screen.item("Note: ", note)
    if line and changed:
        screen.line()
        screen.line("Agents use it of their own accord only where their instructions say so. Add this line")
        screen.line("to AGENTS.md or CLAUDE.md, or have it added by --agents-md FILE:")
        screen.item("  ", (LINE, "strong"))


TWICE = "hooks a second time"
ONE_WAY = "keep one: ua-memory uninstall claude-code, with --project there; /plugin takes a plugin away"
DONE = {"make": "Made", "change": "Changed", "remove": "Removed", "keep": "In place"}


def shape(step: Step, dry: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"path": str(step.file), "what": step.what, "does": step.does}
    return found | ({"diff": step.diff()} if dry and step.does != "keep" else {})


def check(call: Call, target: Target, steps: list[Step]) -> None:
    """Say whether all is in place, and the command and a bank are there. ProblemsFound where it is not."""
    from ua_memory.cli import context
    from ua_memory.cli.format import Screen, emit

    command = command_of(call)[0]
    found = shutil.which(command, path=call.env.get("PATH"))
    rows = [(step.what, str(step.file), step.does == "keep" and step.before is not None) for step in steps]
    both = zip(steps, target.pieces, strict=True)
    old = {(step.what, str(step.file)) for step, piece in both if _there(step, piece)}
    bank = context.bank_here(call)
    rows.append(("bank", str(bank or "none"), bank is not None))
    rows.append(("command", command, found is not None))
    rows += [(f"{TWICE}, by the {way}", where, False) for way, where in target.twice]
    good = all(ok for *_, ok in rows)
    if call.as_json:
        checks = [{"what": what, "where": where, "ok": ok} for what, where, ok in rows]
        emit(call, {"client": target.client, "installed": good, "checks": checks})
    else:
        screen = Screen(call)
        for what, where, ok in rows:
            bad = "twice" if what.startswith(TWICE) else "outdated" if (what, where) in old else "missing"
            word = (f"{'ok' if ok else bad:9}", "good" if ok else "bad")
            screen.item([word], f"{what}: ", (where, "path"))
    if not good:
        if all(ok or what == "bank" for what, _, ok in rows):
            raise ProblemsFound("there is no memory bank: nothing is kept", mend="ua-memory init")
        if target.twice and all(ok or what.startswith(TWICE) for what, _, ok in rows):
            raise ProblemsFound(f"ua-memory is set up for {target.client} more than once", mend=ONE_WAY)
        what = f"ua-memory is not wholly set up for {target.client}"
        show_it = "" if target.client == "cron" else " --dry-run"  # cron's is shown unless --write is said
        raise ProblemsFound(what, mend=f"ua-memory install {target.client}{show_it} shows what is missing")


def _there(step: Step, piece: Piece) -> bool:
    """Whether something of ours is in a file, be it not as it is put there today."""
    text = None if step.before is None else step.before.decode("utf-8", "surrogateescape")
    return step.does != "keep" and text is not None and piece.cut(text) != text


def command_of(call: Call, *, shared: bool = False) -> list[str]:
    """The words that start ua-memory from a client, with `--bank` if the caller named one.

    By its full path, since a client started from a desktop has another PATH; in files that go to other
    people (`shared`) by its name.
    """
    from ua_memory.cli import context

    bank = ["--bank", str(context.absolute(call, call.bank))] if call.bank else []
    if shared:
        return ["ua-memory", *bank]
    beside = Path(sys.executable).parent / "ua-memory"
    # As it was called, if it can be: a link in ~/.local/bin outlives the environment it leads to today.
    found = shutil.which("ua-memory", path=call.env.get("PATH")) or (str(beside) if beside.exists() else None)
    return [os.path.abspath(found) if found else "ua-memory", *bank]  # noqa: PTH100 (no link is followed)
