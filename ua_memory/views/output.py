"""Printing: text for a person, JSON for a script, errors with their exit code, dates and progress."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import threading
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from ua_memory.errors import CannotWrite, OutOfMemory, UaMemoryError
from ua_memory.records import Place
from ua_memory.text.wording import dollars

if TYPE_CHECKING:
    from rich.console import Console

    from ua_memory.caller import Call
    from ua_memory.git.repository import BlameLine, Revision
    from ua_memory.knowledge.core import Budget
    from ua_memory.llm.ledger import Estimate
    from ua_memory.llm.providers import ModelTrial
    from ua_memory.store.draft import Result


# -- format ------------------------------------------------------------------------------------------------
# What is printed: text for a person, JSON for a script. Rich is loaded only where somebody looks.
#
# A `Screen` takes pieces of text with the names of styles. On a terminal it wraps and colours them; in a
# pipe the same words come plain, uncut and without colours. Control characters of remembered text are
# spelled out in both, so that no fact can move the cursor, set the title or turn the line around.


T = TypeVar("T")
Piece = str | tuple[str, str]
"""Text, or text and the name of a style in STYLES."""

STYLES = {
    "strong": "bold", "faint": "dim", "match": "bold red", "path": "cyan", "id": "magenta", "rev": "yellow",
    "good": "green", "bad": "red", "warn": "yellow", "added": "green", "removed": "red", "hunk": "cyan",
}  # fmt: skip
DIFF_ROWS = (
    *((start, "strong") for start in ("diff", "+++ ", "--- ", "inde", "new ", "dele")),
    *(("@@", "hunk"), ("+", "added"), ("-", "removed")),
)
"""How the rows of a diff begin, and their styles."""
MODEL_BY = "(a key, your own server or the client that you have: docs/model.md)"
"""How to have a model, for what is said where there is none."""
ROOM = 24
"""Columns that a text needs beside its label; where there are fewer it begins on the next line."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with control characters, direction marks and broken bytes spelled out: `\\x1b`."""
    return _HIDDEN.sub(lambda found: _spelled(ord(found[0])), text)


def _spelled(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python carries it along
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True)
class BlockLink:
    """A link to a block of the file at `path`. How it is written depends on the vault: see `emit`."""

    path: str
    block: str


def dumps(
    value: object, stream: TextIO, *, indent: int | None = None, default: Callable[[Any], str] | None = None
) -> str:
    """JSON whose strings no reader can take for a line's end, in ASCII where the stream is not UTF-8.
    `default` writes what is no JSON."""
    ascii_only = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, default=default)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def emit(call: Call, value: object) -> None:
    """Print a value as JSON where that is wanted, and nothing else: what a `Screen` prints is for the other
    case, so a command gives both."""
    if call.as_json:
        print_json(call, value)


def print_json(call: Call, value: object, *, line: bool = False) -> None:
    """Print a value as JSON: on one line for a script, indented where a person looks, unless `line`."""
    names = call.link_names.renew() if call.link_names else None

    def linked(found: BlockLink) -> str:
        """Obsidian's link to a block: `[[2026-11-21#^k7m2q9x4tb]]`."""
        return f"[[{names(found.path) if names else PurePosixPath(found.path).stem}#^{found.block}]]"

    indent = 2 if call.on_terminal and not line else None
    call.stdout.write(dumps(value, call.stdout, indent=indent, default=linked) + "\n")


def note(call: Call, text: str) -> None:
    """Say something beside the result, on standard error. With `--json` it is in the JSON instead."""
    if not call.as_json:
        call.stdout.flush()
        call.stderr.write(f"ua-memory: {visible(text)}\n")


def show(
    call: Call, found: object, shape: Callable[..., object], people: Callable[..., None], *more: object
) -> None:
    """Print a result: its JSON for a script, or what `people` says of it. Both take what there is `more`."""
    if call.as_json:
        emit(call, shape(found, *more))
    else:
        people(Screen(call), found, *more)


def show_list(
    call: Call, name: str, found: Sequence[T], shape: Callable[[T], object],
    people: Callable[[Screen, T], None], nothing: str,
) -> None:  # fmt: skip
    """Print each of `found`; as JSON a list under `name`. `nothing` is said where there is none."""
    emit(call, {name: [shape(one) for one in found]})
    screen = Screen(call)
    if not found:
        screen.line(nothing)
    for one in found:
        people(screen, one)


def show_done(call: Call, result: Result, shape: object, *said: Piece) -> None:
    """Print what a revision did: its JSON, or one line that ends with the commit, and its notes."""
    emit(call, shape)
    screen = Screen(call)
    screen.line(*said, " (", commit(result.revision), ")")
    screen.outcome(result)


def agrees(call: Call, question: str) -> bool:
    """Ask a person at a terminal; anything but yes is no."""
    call.stdout.flush()
    call.stderr.write(f"{question} [y/N] ")
    call.stderr.flush()
    return call.stdin.readline().strip().lower() in (b"y", b"yes")


def commit(revision: str | None) -> Piece:
    """`commit 1a2b3c4`, or that the commit is still owed."""
    return (f"commit {revision[:7]}", "rev") if revision else ("not committed yet", "warn")


def cells(text: str) -> int:
    """Columns that a text takes on a terminal: two for CJK and emoji, none for what combines."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200d\ufe0f"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `12 files`, `1,234 revisions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class Screen:
    """Where the human form of a result goes: nowhere with `--json`, see `emit`."""

    def __init__(self, call: Call) -> None:
        self.call, self.width = call, call.width
        self.fancy = call.on_terminal and call.env.get("TERM") != "dumb"
        self._console: Console | None = None

    # -- printing ------------------------------------------------------------------------------

    def line(self, *pieces: Piece) -> None:
        """One line, or on a terminal as many as it takes."""
        self.item("", *pieces)

    def heading(self, *pieces: Piece) -> None:
        """A line with which something else begins: an empty one stands above it."""
        self.line()
        self.line(*pieces)

    def item(self, label: Piece | Sequence[Piece], *pieces: Piece) -> None:
        """A label and a text; on a terminal the text's further lines stand under its first."""
        if self.call.as_json:
            return
        front: list[Piece] = [*label] if isinstance(label, list) else [label]  # type: ignore[list-item]
        lead = visible("".join(_text(piece) for piece in front))
        if not self.fancy:
            body = visible("".join(_text(piece) for piece in pieces)).replace("\n", "\n" + " " * cells(lead))
            self.call.stdout.write(f"{lead}{body}".rstrip() + "\n")
            return
        self._wrapped(front, lead, pieces)

    def raw(self, text: str, *, exact: bool = False) -> None:
        """A text uncut and unwrapped, its control characters spelled out but for those that end its lines; a
        pipe, too, may end at a terminal. To the byte if `exact`."""
        if self.call.as_json:
            return
        if not text.endswith("\n"):
            text += "\n"
        self.call.stdout.write(text if exact else "\r\n".join(map(visible, text.split("\r\n"))))

    def _wrapped(self, front: list[Piece], lead: str, pieces: Iterable[Piece]) -> None:
        from rich.text import Text

        console = self.console()
        indent = cells(lead)
        body = self._styled(pieces)
        out = self._styled(front)
        if indent and self.width - indent < ROOM and cells(body.plain) > self.width - indent:
            out.rstrip()
            out.append("\n")
            indent = min(2, indent)
            out.append(" " * indent)
        lines = body.wrap(console, max(self.width - indent, 8)) if body.plain else [Text("")]
        for number, each in enumerate(lines):
            each.rstrip()
            out.append("\n" + " " * indent if number else "")
            out.append_text(each)
        console.print(out, soft_wrap=True)

    def _styled(self, pieces: Iterable[Piece]) -> Any:
        from rich.text import Text

        text = Text()
        for piece in pieces:
            text.append(visible(_text(piece)), None if isinstance(piece, str) else STYLES[piece[1]])
        return text

    def console(self) -> Console:
        """Rich's console on the caller's output."""
        if self._console is None:
            from rich.console import Console

            class PagedConsole(Console):
                def on_broken_pipe(self) -> None:
                    raise  # by rich the process would end with 1 where a pager was left early

            self._console = PagedConsole(
                file=self.call.stdout, force_terminal=self.fancy, width=self.call.width, highlight=False,
                markup=False, emoji=False, _environ=self.call.env,
            )  # fmt: skip
        return self._console

    # -- beside the result, on standard error ----------------------------------------------------

    def note(self, *texts: str) -> None:
        """Say something beside the result; with `--json` it is in the JSON instead."""
        for text in texts:
            note(self.call, text)

    def removed(self, kinds: Mapping[str, int], before: str = "writing") -> None:
        """Say which secrets were taken out of a text, by kind."""
        for kind, number in kinds.items():
            self.note(f"removed before {before}: {kind}{f' ({number} times)' if number > 1 else ''}")

    def refused(self, texts: Iterable[str]) -> None:
        """What a model proposed and was not kept, a line each."""
        for text in texts:
            self.item([("  ? ", "warn")], (text, "faint"))

    def outcome(self, result: Result, *more: str) -> None:
        """Say what a revision took out, and what else there is to say about it."""
        self.removed(result.redacted)
        if result.redacted:
            self.note("to keep it, write it into a file yourself (ua-memory edit today); search masks it")
        self.note(*more, *result.notes)

    # -- shapes --------------------------------------------------------------------------------

    def rows(self, rows: Sequence[Sequence[Piece]], *, gap: int = 2) -> None:
        """A table without lines: columns as wide as their widest cell, the last one wrapped."""
        if not rows:
            return
        columns = max(len(row) for row in rows) - 1
        widths = [
            max((cells(visible(_text(row[n]))) for row in rows if n < len(row) - 1), default=0)
            for n in range(columns)
        ]
        for row in rows:
            label: list[Piece] = []
            for cell, width in zip(row[:-1], widths, strict=False):
                label += [cell, " " * (width - cells(visible(_text(cell))) + gap)]
            self.item(label, row[-1])

    def bar(self, part: float, size: int = 10) -> list[Piece]:
        """How full something is, drawn; nothing in a pipe."""
        if not self.fancy:
            return []
        filled = min(size, round(part * size)) if part < 1 else size
        style = "bad" if part > 1 else "warn" if part >= 0.8 else "good"
        return [("█" * filled, style), ("░" * (size - filled), "faint"), "  "]

    def changes(self, before: str, after: str) -> None:
        """All lines of two texts: those that went, those that came, those that stay."""
        from difflib import ndiff

        for row in ndiff(before.splitlines(), after.splitlines()):
            if not row.startswith("?"):
                style = {"+": "added", "-": "removed"}.get(row[0], "faint")
                self.item([(f"  {row[:2]}", style)], (row[2:], style))

    def diff(self, text: str, *, exact: bool = False) -> None:
        """A unified diff, coloured where a person looks; to the byte if `exact`."""
        if not self.fancy or exact:
            self.raw(text, exact=exact) if text else None
            return
        for row in text.splitlines():
            style = next((style for start, style in DIFF_ROWS if row.startswith(start)), "")
            self.line((row, style) if style else row)


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


# -- shapes ------------------------------------------------------------------------------------------------
# The JSON shapes that several verbs print, as docs/json.md describes them.


EMPTY: tuple[Any, ...] = (None, "", [], (), {})
"""What says nothing."""


def plain(value: Any) -> Any:
    """A value as JSON has it: tuples as lists, mappings and dataclasses as objects, times in ISO."""
    if dataclasses.is_dataclass(value):
        return fields(value, *(each.name for each in dataclasses.fields(value)))
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return value.isoformat() if isinstance(value, datetime) else value


def fields(one: object, *names: str) -> dict[str, Any]:
    """These attributes of a result as JSON, under their names in camelCase. `result.notes` is one of a part
    of it, `by as model` has another name, `flag?` is left out where it says nothing, and `place` is path,
    lines, citation and the link to its id."""
    found: dict[str, Any] = {}
    for each in names:
        path, _, key = each.removesuffix("?").partition(" as ")
        *parts, name = path.split(".")
        owner = reduce(getattr, parts, one)
        value = getattr(owner, name)
        if name == "place":
            found |= place(value, getattr(owner, "id", None))
        elif not each.endswith("?") or (value is not False and value not in EMPTY):
            first, *rest = name.split("_")
            found[key or first + "".join(map(str.capitalize, rest))] = plain(value)
    return found


def place(at: Place, block: str | None) -> dict[str, Any]:
    """Where something stands: path, lines, citation; for what has an id also id and link."""
    found = {"path": at.path, "startLine": at.line, "endLine": at.end, "citation": at.citation}
    if block:
        found |= {"id": block, "link": BlockLink(at.path, block)}
    return found


def searched(proof: Any) -> dict[str, Any]:
    """What a forgetting looked through, and where it was found still."""
    return fields(proof, "looked as searched", "found")


def revision(one: Revision) -> dict[str, Any]:
    """A revision with everything the trail says of it."""
    op = {"op": one.trailer("Memory-Op")}
    return fields(one, "id as revision", "when", "author") | op | fields(one, "subject", "paths", "trailers")


def blame(one: BlameLine) -> dict[str, Any]:
    """A line and who wrote it; `revision` is absent where no revision has it yet."""
    known = {"revision": one.revision} if one.revision.strip("0") else {}
    return {"line": one.line, **known, **fields(one, "author", "when", "subject", "text")}


def budget(one: Budget) -> dict[str, Any]:
    """Tokens used of a budget."""
    return fields(one, "used as tokens", "limit as budget", "warning?")


def price(cost: Estimate) -> str:
    """What a model's work costs, in words."""
    if cost.subscription:
        return "subscription"
    if not cost.usd:
        return "no price known" if cost.usd is None else "no cost: it runs on this network"
    return f"about {dollars(cost.usd)}, prices of {cost.as_of}"


def estimate(cost: Estimate | None) -> dict[str, Any]:
    """`estimate`: what a model would take, without `usd` where its price is not known; {} without a model."""
    if cost is None:
        return {}
    usd = {} if cost.usd is None else {"usd": round(cost.usd, 4)}
    return {"estimate": {**fields(cost, "model", "tokens", "requests"), **usd}}


def priced(cost: Estimate) -> str:
    """What a model would take, in a sentence."""
    asks, costs = count(cost.requests, "request"), price(cost)
    return f"{cost.model} would read about {cost.tokens:,} tokens in {asks}: {costs}."


def trial(found: ModelTrial) -> dict[str, Any]:
    """How a model answered; without `usd` where its price is not known."""
    reply, cost = found.reply, found.cost
    usd = {} if cost.usd is None else {"usd": round(cost.usd, 6)}
    return {
        "provider": found.provider, "asked": cost.model, "model": reply.model or cost.model,
        **fields(reply, "text"), "seconds": round(found.seconds, 1), **fields(reply, "usage"), **usd,
        **fields(cost, "subscription"),
    }  # fmt: skip


def show_trial(screen: Screen, found: ModelTrial) -> None:
    """How a model answered."""
    reply, cost = found.reply, found.cost
    by = "" if reply.model in ("", cost.model) else f" (answered by {reply.model})"
    screen.rows([
        [("Provider", "strong"), found.provider], [("Model", "strong"), f"{cost.model}{by}"],
        [("Answer", "strong"), reply.text.strip()], [("Time", "strong"), f"{found.seconds:.1f} s"],
        [("Price", "strong"), price(cost)],
    ])  # fmt: skip


# -- times -------------------------------------------------------------------------------------------------
# Dates as people say them.


def day_title(day: date, today: date) -> str:
    """`Saturday 21 November 2026`, with `today` or `yesterday` where that helps."""
    near = {0: " (today)", 1: " (yesterday)"}.get((today - day).days, "")
    return f"{day:%A} {day.day} {day:%B} {day.year}{near}"


def ago(then: datetime, now: datetime) -> str:
    """`just now`, `5 minutes ago`, `yesterday`, `12 days ago`; the date from two months on."""
    seconds = (now - then).total_seconds()
    if seconds < 0:
        return f"{then:%Y-%m-%d %H:%M}"
    if seconds < 60:
        return "just now"
    for size, unit, noun in ((3600, 60, "minute"), (86400, 3600, "hour")):
        if seconds < size:
            return f"{count(int(seconds // unit), noun)} ago"
    return ago_day(then.date(), now.date())


def ago_day(day: date, today: date) -> str:
    """`today`, `yesterday`, `12 days ago`, `in 3 days`; the date itself from two months on."""
    days = (today - day).days
    if days in (0, 1, -1):
        return {0: "today", 1: "yesterday", -1: "tomorrow"}[days]
    if abs(days) > 60:
        return day.isoformat()
    return f"{days} days ago" if days > 0 else f"in {-days} days"


# -- progress ----------------------------------------------------------------------------------------------
# Progress of long work, on standard error, and only where that is a terminal.


PATIENCE = 2.0
"""Seconds that go by before anything is shown: most work is done by then."""


@contextmanager
def progress(call: Call, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to be told (done, total), or None where nobody looks. The bar is gone at the end."""
    if "stderr" not in call.terminals or call.env.get("TERM") == "dumb":
        yield None
        return
    shown = _Bar(call, what)
    # By the clock and not by the first report: what takes long may be long in reporting, too.
    patience = threading.Timer(PATIENCE, shown.start)
    patience.daemon = True
    patience.start()
    try:
        yield shown.tell
    finally:
        patience.cancel()
        shown.stop()


class _Bar:
    """A bar that begins without knowing how much there is to do. `start` runs in a timer's thread."""

    def __init__(self, call: Call, what: str) -> None:
        self.call, self.what = call, what
        self.known: tuple[int, int] | None = None
        self.lock, self.over = threading.Lock(), False
        self.bar: Any = None
        self.task: Any = None

    def tell(self, done: int, total: int) -> None:
        with self.lock:
            self.known = (done, total)
            if self.bar is not None:
                self.bar.update(self.task, completed=done, total=total)

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        class HowFarColumn(ProgressColumn):
            """How many of how many and the time that is left; a clock, as long as nobody knows how many."""

            def render(self, task: Any) -> Text:
                if task.total is None:
                    return Text(str(timedelta(seconds=int(task.elapsed or 0))))
                left = task.time_remaining
                clock = f"  {timedelta(seconds=int(left))} left" if left is not None else ""
                return Text(f"{task.completed:.0f}/{task.total:.0f}{clock if call.width >= 60 else ''}")

        call = self.call
        with self.lock:
            if self.over:
                return
            console = Console(file=call.stderr, force_terminal=True, width=call.width, _environ=call.env)
            columns = TextColumn("{task.description}"), BarColumn(), HowFarColumn()
            self.bar = Progress(*columns, console=console, transient=True)
            done, total = self.known or (0, None)
            self.task = self.bar.add_task(self.what, completed=done, total=total)
            self.bar.start()

    def stop(self) -> None:
        with self.lock:
            self.over = True
            if self.bar is not None:
                self.bar.stop()


# -- errors ------------------------------------------------------------------------------------------------
# The one boundary: every way a call can fail becomes a message on standard error and an exit code.


INTERRUPTED = 130
PIPE_CLOSED = 141


def guarded(call: Call, work: Callable[[], int]) -> int:
    """Run `work` and return its exit code, or that of what it raised, told to the caller."""
    try:
        code = work()
        call.stdout.flush()
        return code
    except BrokenPipeError:
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except UaMemoryError as error:
        return _tell(call, type(error).__name__, error.what, error.exit_code, error.where, error.hint)
    except MemoryError:
        hint = "raise the limit (ulimit -v), or end other programs"
        return _tell(call, "OutOfMemory", "not enough memory", OutOfMemory.exit_code, None, hint)
    except Exception as error:
        if _is_usage(error):
            return _usage(call, error)
        if call.debug:
            traceback.print_exc(file=call.stderr)
        return _system(call, error) if isinstance(error, OSError) else _bug(call, error)


def _tell(
    call: Call, kind: str, what: str, code: int, where: str | None = None, hint: str | None = None
) -> int:
    """Print the message for a person, or with `--json` the object for a script."""
    if call.as_json:
        details = {"type": kind, "message": what, "where": where, "mend": hint, "exit_code": code}
        text = dumps({"error": details}, call.stderr)
    else:
        text = visible(f"ua-memory: error: {f'{where}: ' if where else ''}{what}")
        text += f"\n  hint: {visible(hint)}" if hint else ""
    # Nobody may listen any more, or only to one of them; the exit code still tells.
    with contextlib.suppress(OSError):
        call.stdout.flush()
    with contextlib.suppress(OSError):
        call.stderr.write(text + "\n")
        call.stderr.flush()
    return code


def _is_usage(error: Exception) -> bool:
    """Whether typer itself refused the arguments. Its base class has changed its module more than once."""
    import typer

    return isinstance(error, typer.BadParameter.__mro__[2])


def _usage(call: Call, error: Exception) -> int:
    what = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "ua-memory"
    if type(error).__name__ == "NoArgsIsHelpError" and ctx is not None:
        call.stdout.write(ctx.get_help() + "\n")
        return 2
    hint = f"{path} --help"
    if what.startswith("No such option") and path.endswith((" insert", " search")):
        hint = f"{path} -- TEXT, if the text itself begins with a dash; else {hint}"
    what = what[:1].lower() + what[1:] if what[1:2].islower() else what
    return _tell(call, "Usage", " ".join(what.split()), 2, None, hint)


def _system(call: Call, error: OSError) -> int:
    """What the file system refused outside the store, which words its own refusals."""
    what = error.strerror or str(error) or type(error).__name__
    where = str(error.filename) if error.filename else None
    hint = "check owner, mode and free space; UA_MEMORY_DEBUG=1 tells more"
    return _tell(call, "CannotWrite", what, CannotWrite.exit_code, where, hint)


def _bug(call: Call, error: Exception) -> int:
    first = (str(error).splitlines() or [""])[0][:300]
    what = f"a bug in ua-memory: {type(error).__name__}{f': {first}' if first else ''}"
    hint = "run it again with UA_MEMORY_DEBUG=1 and report what it prints"
    return _tell(call, "Bug", what, 1, None, hint)
