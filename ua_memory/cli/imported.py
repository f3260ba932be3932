"""Reading a source's files, and telling what an import did or would do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import regular
from ua_memory.errors import Malformed, NotFound

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Screen
    from ua_memory.memory import Brought, Taken

READ = {"hindsight": (".md", ".json", ".jsonl")}
NAMED = {"claude-code": (".jsonl",)}
"""What is read for a source besides markdown, and what is only noticed: transcripts may be large."""
SKIPPED = ("node_modules", "__pycache__", "venv")
LARGEST = 64 * 1024 * 1024
"""Bytes of a file; a larger one is no note, and an export of that size is better cut into documents."""
SHOWN = 12
"""Lines of a list that a person is shown; `--json` has all."""


def files_of(root: Path, ours: Path, source: str) -> tuple[dict[str, bytes], list[str]]:
    """The files that a reader may want, by their path below `root`, and what could not be read. A link to a
    file is followed, one to a folder is not; nothing hidden is looked into, nor is
    the bank itself, `ours`. NotFound; Malformed where `root` is a file that cannot be read."""
    files: dict[str, bytes] = {}
    unread: list[str] = []
    if not root.exists():
        raise NotFound("there is nothing", where=str(root), mend="name the folder or file to import")
    wanted, named = READ.get(source, (".md",)), NAMED.get(source, ())

    def refused(error: OSError) -> None:
        unread.append(f"{error.filename}: {error.strerror}")

    for file in _walk(root, ours, (*wanted, *named), refused):
        name = file.name if file == root else file.relative_to(root).as_posix()
        try:
            if name.lower().endswith(named):
                files[name] = b""
            else:
                files[name] = regular.read(file, LARGEST)
        except OSError as error:
            if file == root:  # it was named, not found
                why = f"cannot be read: {error.strerror or error}"
                raise Malformed(why, where=str(root), mend="name a folder or a file") from error
            unread.append(f"{name}: {error.strerror or error}")
    return files, unread


def _walk(
    root: Path, ours: Path, wanted: tuple[str, ...], unread: Callable[[OSError], None]
) -> Iterator[Path]:
    if not root.is_dir():
        yield root
        return
    for folder, below, names in os.walk(root, onerror=unread):
        fit = (name for name in below if not name.startswith(".") and name not in SKIPPED)
        below[:] = sorted(name for name in fit if Path(folder, name).resolve() != ours)
        for name in sorted(names):
            file = Path(folder, name)
            if name.lower().endswith(wanted) and not name.startswith(".") and not file.is_dir():
                yield file


def shape(done: Brought, unread: list[str]) -> dict[str, Any]:
    """The JSON of an import."""
    found = done.found
    result: dict[str, Any] = {
        "source": found.source,
        "name": found.name,
        "dry_run": done.result is None,
        "taken": [_taken(each) for each in done.taken],
        "later": found.later,
        "left": [*found.left, *unread],
        "problems": [str(problem) for problem in found.problems],
        "redacted": dict(done.redacted),
    }
    if done.result:
        result |= {"revision": done.result.revision, "notes": list(done.result.notes)}
    return result


def _taken(one: Taken) -> dict[str, Any]:
    from ua_memory.cli import shapes

    known = {"day": one.day, "why": one.why, "facts": one.facts, "prose": one.prose}
    return {
        "what": one.what,
        "source": one.source,
        "path": one.path,
        "state": one.state,
        **shapes.without_empty(known),
    }


# -- for a person ----------------------------------------------------------------------------------------


def tell(call: Call, done: Brought, unread: list[str]) -> None:
    """The report: what was found and how well, what was not taken, and what to do next."""
    from ua_memory.cli.format import Screen, commit, note

    screen, found, changed = Screen(call), done.found, _changes(done)
    if done.result is None:
        screen.line(("Would import", "strong"), f" {found.name} ({found.source}):")
    elif changed:
        screen.line("Imported ", (found.name, "strong"), f" ({found.source}): ", commit(done.result.revision))
    else:
        screen.line(f"Nothing new in {found.name} ({found.source}): all of it is here already.")
    screen.rows([["  " + label, text] for label, text in _figures(done)])
    for title, lines in _lists(done, unread):
        _listed(screen, title, lines)
    _next(screen, done, changed)
    for text in done.result.notes if done.result else ():
        note(call, text)


def _changes(done: Brought) -> int:
    return sum(1 for each in done.taken if each.state in ("new", "updated"))


def _figures(done: Brought) -> Iterator[tuple[str, str]]:
    from ua_memory.cli.format import count

    names = {"block": "core memory", "note": "notes", "item": "records", "model": "models", "page": "pages"}
    words = {"new": "new", "same": "here already", "updated": "brought up to date", "left": "not taken"}
    for what, label in names.items():
        words["left"] = "in a note instead" if what == "block" else "not taken"
        parts = [f"{n:,} {word}" for state, word in words.items() if (n := done.count(what, state))]  # type: ignore[arg-type]
        if parts:
            yield label, ", ".join(parts)
    fresh = [t for t in done.taken if t.state in ("new", "updated") and (t.what == "note" or t.facts)]
    if fresh:
        facts, prose = sum(t.facts for t in fresh), sum(t.prose for t in fresh)
        beliefs = done.count("item", "new") - sum(t.what == "item" for t in fresh)
        more = f", {count(beliefs, 'observation or opinion', 'observations and opinions')}" if beliefs else ""
        yield "in them", f"{count(facts, 'fact')}, {count(prose, 'passage')} of prose{more}"
        days = sorted(t.day for t in fresh if t.day)
        bare = len(fresh) - len(days)
        span = f"{days[0]} to {days[-1]}" if days else "none found"
        yield "days", span + (f"; {bare:,} without a day" if bare else "")
    if done.redacted:
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(done.redacted.items()))
        yield "secrets", f"{'taken out' if done.result else 'would be taken out'}: {kinds}"


def _lists(done: Brought, unread: list[str]) -> Iterator[tuple[str, list[str]]]:
    left = [t for t in done.taken if t.state == "left"]
    yield "Not in core memory, but in a note:", [f"{t.source}: {t.why}" for t in left if t.what == "block"]
    yield "Not taken:", [f"{t.source}: {t.why}" for t in left if t.what != "block"]
    yield "Brought up to date:", [t.path for t in done.taken if t.state == "updated"]
    yield "Left out:", [*done.found.left, *unread]
    yield "Read as text, or not at all:", [str(problem) for problem in done.found.problems]


def _listed(screen: Screen, title: str, lines: list[str]) -> None:
    if not lines:
        return
    screen.line((title, "strong"))
    for line in lines[:SHOWN]:
        screen.item("  ", line)
    if len(lines) > SHOWN:
        screen.line((f"  … and {len(lines) - SHOWN:,} more (--json lists all)", "faint"))


def _next(screen: Screen, done: Brought, changed: int) -> None:
    from ua_memory.cli.format import count

    if done.found.later:
        screen.line(f"Not asked for: {count(done.found.later, 'older or undated note')}; --all takes them.")
    if done.result is None:
        screen.line(("Nothing was changed. Without --dry-run it is done, in one commit.", "faint"))
    elif changed:
        screen.line(("Next: ua-memory search WORDS; ua-memory undo takes all of it back.", "faint"))
