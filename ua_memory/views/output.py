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
from errno import ENOSPC
from functools import reduce
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from ua_memory.errors import CannotWrite, OutOfMemory, UaMemoryError, Usage, mending
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


# -- text and JSON -----------------------------------------------------------------------------------------
# A command prints text for a person or JSON for a script. Rich is loaded only for a terminal.
#
# A `Screen` takes text with the names of styles. On a terminal it wraps and colours it; in a pipe the same
# text comes uncut and without colours. Control characters in remembered text are escaped in both, so that no
# fact can move the cursor, set the title or reverse the line.


T = TypeVar("T")
Styled = str | tuple[str, str]
"""Text, or text and the name of a style in STYLES."""

STYLES = {
    "strong": "bold", "faint": "dim", "match": "bold red", "path": "cyan", "id": "magenta", "rev": "yellow",
    "good": "green", "bad": "red", "warn": "yellow", "added": "green", "removed": "red", "hunk": "cyan",
}  # fmt: skip
DIFF_ROWS = (
    *((start, "strong") for start in ("diff", "+++ ", "--- ", "inde", "new ", "dele")),
    *(("@@", "hunk"), ("+", "added"), ("-", "removed")),
)
"""Prefixes of a diff's lines → their styles."""
MIN_TEXT_WIDTH = 24
"""Columns that a text needs beside its label. With fewer it starts on the next line."""

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with control characters, direction marks and invalid bytes escaped: `\\x1b`."""
    return _CONTROL_CHARACTERS.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:  # an invalid UTF-8 byte, as surrogateescape decodes it
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True)
class BlockLink:
    """A link to a block of the file at `path`. `print_json` writes it as the Obsidian vault needs it."""

    path: str
    block: str


def dumps(
    value: object, stream: TextIO, *, indent: int | None = None, default: Callable[[Any], str] | None = None
) -> str:
    """Serialize to JSON, in ASCII if the stream is not UTF-8. Characters that some readers take for a line
    break are escaped. `default` is that of `json.dumps`."""
    ascii_only = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, default=default)
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def emit_json(call: Call, value: object) -> None:
    """Print a value as JSON if `--json` was given. A `Screen` prints only without it, so a command can call
    both."""
    if call.as_json:
        print_json(call, value)


def print_json(call: Call, value: object, *, line: bool = False) -> None:
    """Print a value as JSON: indented on a terminal unless `line`, else on one line."""
    names = call.link_names.renew() if call.link_names else None

    def write_link(found: BlockLink) -> str:
        """Obsidian's link to a block: `[[2026-11-21#^k7m2q9x4tb]]`."""
        return f"[[{names(found.path) if names else PurePosixPath(found.path).stem}#^{found.block}]]"

    indent = 2 if call.on_terminal and not line else None
    call.stdout.write(dumps(value, call.stdout, indent=indent, default=write_link) + "\n")


def note(call: Call, text: str) -> None:
    """Print a note on standard error; nothing with `--json`, which has the notes in its object."""
    if not call.as_json:
        call.stdout.flush()
        call.stderr.write(f"ua-memory: {printable(text)}\n")


def show_result(
    call: Call, result: object, to_json: Callable[..., object], to_screen: Callable[..., None], *args: object
) -> None:
    """Print a result: `to_json(result, *args)` with `--json`, else by `to_screen(screen, result, *args)`."""
    if call.as_json:
        emit_json(call, to_json(result, *args))
    else:
        to_screen(Screen(call), result, *args)


def show_list(
    call: Call, name: str, results: Sequence[T], to_json: Callable[[T], object],
    to_screen: Callable[[Screen, T], None], if_empty: str,
) -> None:  # fmt: skip
    """Print each result, or the text `if_empty`; with `--json` a list under the key `name`."""
    emit_json(call, {name: [to_json(one) for one in results]})
    screen = Screen(call)
    if not results:
        screen.line(if_empty)
    for one in results:
        to_screen(screen, one)


def show_revision(call: Call, result: Result, value: object, *sentence: Styled) -> None:
    """Print what a revision did: `value` as JSON, or `sentence` with the commit, and its notes."""
    emit_json(call, value)
    screen = Screen(call)
    label: Styled = commit_label(result.revision) if result.paths else "nothing was changed"
    screen.line(*sentence, " (", label, ")")
    screen.outcome(result)


def confirm(call: Call, question: str, no: str = "Nothing was changed.") -> bool:
    """Ask a yes-or-no question on the terminal. The default is no, which is confirmed by a line."""
    call.stdout.flush()
    call.stderr.write(f"{question} [y/N] ")
    call.stderr.flush()
    agreed = call.stdin.readline().strip().lower() in (b"y", b"yes")
    call.stderr.write("" if agreed else f"{no}\n")
    return agreed


def commit_label(revision: str | None) -> Styled:
    """`commit 1a2b3c4`, or `not committed yet`."""
    return (f"commit {revision[:7]}", "rev") if revision else ("not committed yet", "warn")


def id_label(block: str | None) -> Styled:
    """`  ^k7m2q9x4tb`, empty for None, to end a line."""
    return (f"  ^{block}" if block else "", "id")


def cell_width(text: str) -> int:
    """Columns of a text on a terminal: two for CJK and emoji, none for combining characters."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(c) or c in "\u200d\ufe0f"
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


_NOT_FIRST = frozenset(
    "、。，．・：；！？）」』】〕〉》”’々ーぁぃぅぇぉっゃゅょァィゥェォッャュョ…%,.!?)]}:; "
)
_NOT_LAST = frozenset("（「『【〔〈《“‘([{")


def line_breaks(text: str, width: int) -> list[int]:
    """Where the lines of a text end: at blanks, and between wide characters, which have none. No line begins
    with a full stop or a small kana, and none ends with an opening bracket."""
    found, start, used, last = list[int](), 0, 0, 0
    for at, sign in enumerate(text):
        before, size = text[at - 1 : at], cell_width(sign)
        wide = size == 2 or cell_width(before) == 2
        if before == " " or (wide and size and sign not in _NOT_FIRST and before not in _NOT_LAST):
            last = at
        used += size
        if used > width and sign != " " and at > start:
            start = last if last > start else at
            found.append(start)
            used = cell_width(text[start : at + 1])
    return found


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `12 files`, `1,234 revisions`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class Screen:
    """Prints results for a person. Its methods print nothing with `--json`."""

    def __init__(self, call: Call) -> None:
        self.call, self.width = call, call.width
        self.is_terminal = call.on_terminal and call.env.get("TERM") != "dumb"
        self._console: Console | None = None

    # -- printing ------------------------------------------------------------------------------

    def line(self, *pieces: Styled) -> None:
        """Print a line, which a terminal wraps."""
        self.item("", *pieces)

    def heading(self, *pieces: Styled) -> None:
        """Print an empty line, then this one."""
        self.line()
        self.line(*pieces)

    def item(self, label: Styled | Sequence[Styled], *pieces: Styled) -> None:
        """Print a label and a text. Wrapped lines of the text are indented to where it starts."""
        if self.call.as_json:
            return
        front: list[Styled] = [*label] if isinstance(label, list) else [label]  # type: ignore[list-item]
        lead = printable("".join(_plain_text(piece) for piece in front))
        if not self.is_terminal:
            indent = "\n" + " " * cell_width(lead)
            body = printable("".join(_plain_text(piece) for piece in pieces)).replace("\n", indent)
            self.call.stdout.write(f"{lead}{body}".rstrip() + "\n")
            return
        self._wrapped(front, lead, pieces)

    def raw(self, text: str, *, exact: bool = False) -> None:
        """Print a text without wrapping, its control characters escaped except in line ends: a pipe, too, may
        end at a terminal. `exact` escapes nothing."""
        if self.call.as_json:
            return
        if not text.endswith("\n"):
            text += "\n"
        self.call.stdout.write(text if exact else "\r\n".join(map(printable, text.split("\r\n"))))

    def _wrapped(self, front: list[Styled], lead: str, pieces: Iterable[Styled]) -> None:
        from rich.text import Text

        console = self.console()
        indent = cell_width(lead)
        body = self._styled(pieces)
        out = self._styled(front)
        if indent and self.width - indent < MIN_TEXT_WIDTH and cell_width(body.plain) > self.width - indent:
            out.rstrip()
            out.append("\n")
            indent = min(2, indent)
            out.append(" " * indent)
        width = max(self.width - indent, 8)
        if cell_width(body.plain) > len(body.plain):
            parts = body.split("\n", allow_blank=True)
            lines = [line for part in parts for line in part.divide(line_breaks(part.plain, width))]
        else:
            lines = [*body.wrap(console, width)] if body.plain else [Text("")]
        for number, each in enumerate(lines):
            each.rstrip()
            out.append("\n" + " " * indent if number else "")
            out.append_text(each)
        console.print(out, soft_wrap=True)

    def _styled(self, pieces: Iterable[Styled]) -> Any:
        from rich.text import Text

        text = Text()
        for piece in pieces:
            text.append(printable(_plain_text(piece)), None if isinstance(piece, str) else STYLES[piece[1]])
        return text

    def console(self) -> Console:
        """Rich's console on the call's standard output."""
        if self._console is None:
            from rich.console import Console

            class PagedConsole(Console):
                def on_broken_pipe(self) -> None:
                    raise  # rich would exit with 1 when a pager is closed early

            self._console = PagedConsole(
                file=self.call.stdout, force_terminal=self.is_terminal, width=self.call.width,
                highlight=False, markup=False, emoji=False, _environ=self.call.env,
            )  # fmt: skip
        return self._console

    # -- notes on standard error -----------------------------------------------------------------

    def note(self, *texts: str) -> None:
        """Print notes, as `note` does."""
        for text in texts:
            note(self.call, text)

    def redacted(self, kinds: Mapping[str, int], before: str = "writing") -> None:
        """Note how many secrets of each kind were redacted."""
        for kind, number in kinds.items():
            self.note(f"removed before {before}: {kind}{f' ({number} times)' if number > 1 else ''}")

    def refused(self, texts: Sequence[str], by: str, *, apart: bool = True) -> None:
        """List what a model proposed and was refused below a title, which an empty line sets `apart`."""
        if texts:
            (self.heading if apart else self.line)((f"Proposed by {by}, but not saved:", "faint"))
        for text in texts:
            self.item([("  ? ", "warn")], (text, "faint"))

    def outcome(self, result: Result, *more: str) -> None:
        """Print a revision's notes: what was redacted, `more`, and its own."""
        self.redacted(result.redacted)
        if result.redacted:
            self.note("to keep it, write it into a file yourself (ua-memory edit today); search masks it")
        self.note(*more, *result.notes)

    # -- tables and diffs ----------------------------------------------------------------------

    def rows(self, rows: Sequence[Sequence[Styled]], *, gap: int = 2) -> None:
        """Print a table without borders. Columns are as wide as their widest cell; the last one wraps."""
        if not rows:
            return
        columns = max(len(row) for row in rows) - 1
        widths = [
            max((cell_width(printable(_plain_text(row[n]))) for row in rows if n < len(row) - 1), default=0)
            for n in range(columns)
        ]
        for row in rows:
            label: list[Styled] = []
            for cell, width in zip(row[:-1], widths, strict=False):
                label += [cell, " " * (width - cell_width(printable(_plain_text(cell))) + gap)]
            self.item(label, row[-1])

    def bar(self, part: float, size: int = 10) -> list[Styled]:
        """A bar of `size` columns, filled to the share `part`; empty in a pipe."""
        if not self.is_terminal:
            return []
        filled = min(size, round(part * size)) if part < 1 else size
        style = "bad" if part > 1 else "warn" if part >= 0.8 else "good"
        return [("█" * filled, style), ("░" * (size - filled), "faint"), "  "]

    def changes(self, before: str, after: str) -> None:
        """Print a diff of two texts with all of their lines."""
        from difflib import ndiff

        for row in ndiff(before.splitlines(), after.splitlines()):
            if not row.startswith("?"):
                style = {"+": "added", "-": "removed"}.get(row[0], "faint")
                self.item([(f"  {row[:2]}", style)], (row[2:], style))

    def diff(self, text: str, *, exact: bool = False) -> None:
        """Print a unified diff, coloured on a terminal. `exact` prints its bytes unchanged."""
        if not self.is_terminal or exact:
            self.raw(text, exact=exact) if text else None
            return
        for row in text.splitlines():
            style = next((style for start, style in DIFF_ROWS if row.startswith(start)), "")
            self.line((row, style) if style else row)


def _plain_text(piece: Styled) -> str:
    return piece if isinstance(piece, str) else piece[0]


# -- JSON that several commands share, see docs/json.md ----------------------------------------------------


EMPTY_VALUES: tuple[Any, ...] = (None, "", [], (), {})
"""Values that `fields` leaves out under a name with `?`."""


def json_value(value: Any) -> Any:
    """Convert a value for JSON: tuples to lists, mappings and dataclasses to objects, times to ISO 8601."""
    if dataclasses.is_dataclass(value):
        return fields(value, *(each.name for each in dataclasses.fields(value)))
    if isinstance(value, list | tuple | Mapping):
        return _convert(value, json_value)
    return value.isoformat() if isinstance(value, datetime) else value


def _convert(value: Any, convert: Callable[[Any], object] | Sequence[Field]) -> Any:
    """Convert a value, or each element of a list or mapping, by a function or to these `fields`."""
    to_json = convert if callable(convert) else lambda one: fields(one, *convert)
    if isinstance(value, list | tuple):
        return [to_json(each) for each in value]
    if isinstance(value, Mapping):
        return {key: to_json(each) for key, each in value.items()}
    return None if value is None else to_json(value)


Field = str | tuple[str, Callable[[Any], object] | Sequence[Any]]
"""An attribute's name for `fields`, or a pair of it and how to convert the value or its elements: a function,
or the `Field`s of their own."""


def fields(one: object, *names: Field) -> dict[str, Any]:
    """An object with these attributes of `one` as JSON, their names in camelCase. In a name, `result.notes`
    is an attribute of an attribute, `by as model` renames it, and `flag?` leaves it out if it is empty.
    `place` becomes path, lines, citation and the link to the id."""
    found: dict[str, Any] = {}
    for field in names:
        each, convert = (field, json_value) if isinstance(field, str) else field
        path, _, key = each.removesuffix("?").partition(" as ")
        *parts, name = path.split(".")
        owner = reduce(getattr, parts, one)
        value = getattr(owner, name)
        if name == "place":
            found |= place_json(value, getattr(owner, "id", None))
        elif not each.endswith("?") or (value is not False and value not in EMPTY_VALUES):
            first, *rest = name.split("_")
            found[key or first + "".join(map(str.capitalize, rest))] = _convert(value, convert)
    return found


def place_json(at: Place, block: str | None) -> dict[str, Any]:
    """Path, lines and citation of a place; of a block with an id also id and link."""
    found = {"path": at.path, "startLine": at.line, "endLine": at.end, "citation": at.citation}
    if block:
        found |= {"id": block, "link": BlockLink(at.path, block)}
    return found


TRACE = ("proof.searched", "proof.found")
"""What a forget searched, and where it still found something."""


def revision_json(one: Revision) -> dict[str, Any]:
    """A revision with its trailers."""
    op = {"op": one.trailer("Memory-Op")}
    return fields(one, "id as revision", "when", "author") | op | fields(one, "subject", "paths", "trailers")


def blame_json(one: BlameLine) -> dict[str, Any]:
    """A line and who wrote it, without `revision` if it is not committed yet."""
    known = {"revision": one.revision} if one.revision.strip("0") else {}
    return {"line": one.line, **known, **fields(one, "author", "when", "subject", "text")}


def budget_json(one: Budget) -> dict[str, Any]:
    """Tokens used, the budget, and a warning if there is one."""
    return fields(one, "used as tokens", "limit as budget", "warning?")


def price_text(cost: Estimate) -> str:
    """What a model's work costs: `about $0.02, prices of 2026-11-01`."""
    if cost.subscription:
        return "subscription"
    if not cost.usd:
        return "no price known" if cost.usd is None else "no cost: it runs on this network"
    return f"about {dollars(cost.usd)}, prices of {cost.as_of}"


def estimate_json(cost: Estimate | None) -> dict[str, Any]:
    """The key `estimate`: tokens, requests and price of a model's work, without `usd` if the price is
    unknown; {} without a model."""
    if cost is None:
        return {}
    usd = {} if cost.usd is None else {"usd": round(cost.usd, 4)}
    return {"estimate": {**fields(cost, "model", "tokens", "requests"), **usd}}


def estimate_text(cost: Estimate) -> str:
    """Tokens, requests and price of a model's work, as a sentence."""
    asks, costs = count(cost.requests, "request"), price_text(cost)
    return f"{cost.model} would read about {cost.tokens:,} tokens in {asks}: {costs}."


def model_trial_json(found: ModelTrial) -> dict[str, Any]:
    """A test request to a model, without `usd` if its price is unknown."""
    reply, cost = found.reply, found.cost
    usd = {} if cost.usd is None else {"usd": round(cost.usd, 6)}
    return {
        "provider": found.provider, "asked": cost.model, "model": reply.model or cost.model,
        **fields(reply, "text"), "seconds": round(found.seconds, 1), **fields(reply, "usage"), **usd,
        **fields(cost, "subscription"),
    }  # fmt: skip


def show_model_trial(screen: Screen, found: ModelTrial) -> None:
    """Print a test request to a model: who answered, what, how fast and at what price."""
    reply, cost = found.reply, found.cost
    by = "" if reply.model in ("", cost.model) else f" (answered by {reply.model})"
    screen.rows([
        [("Provider", "strong"), found.provider], [("Model", "strong"), f"{cost.model}{by}"],
        [("Answer", "strong"), reply.text.strip()], [("Time", "strong"), f"{found.seconds:.1f} s"],
        [("Price", "strong"), price_text(cost)],
    ])  # fmt: skip


# -- dates for people --------------------------------------------------------------------------------------


def day_title(day: date, today: date) -> str:
    """`Saturday 21 November 2026`, followed by `(today)` or `(yesterday)` if it is that."""
    near = {0: " (today)", 1: " (yesterday)"}.get((today - day).days, "")
    return f"{day:%A} {day.day} {day:%B} {day.year}{near}"


def ago(then: datetime, now: datetime) -> str:
    """`just now`, `5 minutes ago`, `yesterday`, `12 days ago`; after 60 days the date."""
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
    """`today`, `yesterday`, `12 days ago`, `in 3 days`; after 60 days the date."""
    days = (today - day).days
    if days in (0, 1, -1):
        return {0: "today", 1: "yesterday", -1: "tomorrow"}[days]
    if abs(days) > 60:
        return day.isoformat()
    return f"{days} days ago" if days > 0 else f"in {-days} days"


# -- progress ----------------------------------------------------------------------------------------------
# Progress of long work, on standard error, and only where that is a terminal.


PROGRESS_DELAY = 2.0
"""Seconds before the bar is shown: most work is done by then."""


@contextmanager
def progress(call: Call, title: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar. Yields a function that takes (done, total), or None without a terminal."""
    if "stderr" not in call.terminals or call.env.get("TERM") == "dumb":
        yield None
        return
    bar = _ProgressBar(call, title)
    # A timer and not the first report: slow work may also be slow to report.
    timer = threading.Timer(PROGRESS_DELAY, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield bar.update
    finally:
        timer.cancel()
        bar.stop()


class _ProgressBar:
    """A progress bar whose total may be unknown at first. `start` runs in a timer's thread."""

    def __init__(self, call: Call, title: str) -> None:
        self.call, self.what = call, title
        self.reported: tuple[int, int] | None = None
        self.lock, self.stopped = threading.Lock(), False
        self.bar: Any = None
        self.task: Any = None

    def update(self, done: int, total: int) -> None:
        with self.lock:
            self.reported = (done, total)
            if self.bar is not None:
                self.bar.update(self.task, completed=done, total=total)

    def start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.text import Text

        class DoneColumn(ProgressColumn):
            """`3/12` and the time left; the time elapsed while the total is unknown."""

            def render(self, task: Any) -> Text:
                if task.total is None:
                    return Text(str(timedelta(seconds=int(task.elapsed or 0))))
                left = task.time_remaining
                clock = f"  {timedelta(seconds=int(left))} left" if left is not None else ""
                return Text(f"{task.completed:.0f}/{task.total:.0f}{clock if call.width >= 60 else ''}")

        call = self.call
        with self.lock:
            if self.stopped:
                return
            console = Console(file=call.stderr, force_terminal=True, width=call.width, _environ=call.env)
            columns = TextColumn("{task.description}"), BarColumn(), DoneColumn()
            self.bar = Progress(*columns, console=console, transient=True)
            done, total = self.reported or (0, None)
            self.task = self.bar.add_task(self.what, completed=done, total=total)
            self.bar.start()

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            if self.bar is not None:
                self.bar.stop()


# -- errors ------------------------------------------------------------------------------------------------
# Every way that a call can fail becomes a message on standard error and an exit code.


INTERRUPTED = 130
PIPE_CLOSED = 141


def run_reporting_errors(call: Call, work: Callable[[], int]) -> int:
    """Run `work` and return its exit code. What it raises is printed, and its exit code returned."""
    try:
        code = work()
        try:
            call.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_lost(error) from error
        return code
    except BrokenPipeError:
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except UaMemoryError as error:
        return _report_error(call, error)
    except MemoryError:
        hint = "raise the limit (ulimit -v), or end other programs"
        return _report_error(call, OutOfMemory("not enough memory", hint=hint))
    except Exception as error:
        if _is_usage_error(error):
            return _report_usage_error(call, error)
        if call.debug:
            traceback.print_exc(file=call.stderr)
        return _report_os_error(call, error) if isinstance(error, OSError) else _report_bug(call, error)


def output_lost(error: OSError, ended: bool = True) -> CannotWrite:
    """What is reported of a command, by default one that has ended, whose output cannot be written."""
    done = "the command itself was carried out; only its output is lost"
    hint = done if ended else "the command may have been carried out: ua-memory log"
    return CannotWrite(f"cannot write the output: {error.strerror or error}", hint=hint)


def _report_error(call: Call, error: UaMemoryError, kind: str = "") -> int:
    """Print an error's message, or with `--json` its object of this `kind`, and return its exit code."""
    if call.as_json:
        details: dict[str, object] = {"type": kind or type(error).__name__, "message": error.what}
        details |= {"where": error.where, "mend": error.hint, "exit_code": error.exit_code}
        text = dumps({"error": details}, call.stderr)
    else:
        text = printable(f"ua-memory: error: {error}")
        text += f"\n  hint: {printable(error.hint)}" if error.hint else ""
    # Either stream may be closed by now; the exit code still tells.
    with contextlib.suppress(OSError):
        call.stdout.flush()
    with contextlib.suppress(OSError):
        call.stderr.write(text + "\n")
        call.stderr.flush()
    return error.exit_code


def _is_usage_error(error: Exception) -> bool:
    """Whether typer refused the arguments. Its base class has changed modules, hence the MRO."""
    import typer

    return isinstance(error, typer.BadParameter.__mro__[2])


def _report_usage_error(call: Call, error: Exception) -> int:
    what = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    what = what.replace("a valid int range", "an integer").replace("a valid float range", "a number")
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "ua-memory"
    if type(error).__name__ == "NoArgsIsHelpError" and ctx is not None:
        return run_reporting_errors(call, lambda: call.stdout.write(ctx.get_help() + "\n") and 2)
    hint = f"{path} --help"
    if what.startswith("No such option") and path.endswith((" insert", " search")):
        hint = f"{path} -- TEXT, if the text itself begins with a dash; else {hint}"
    what = what[:1].lower() + what[1:] if what[1:2].islower() else what
    return _report_error(call, Usage(" ".join(what.split()), hint=hint))


def _report_os_error(call: Call, error: OSError) -> int:
    """Report an error of the file system. The store has already turned its own into our errors."""
    what = error.strerror or str(error) or type(error).__name__
    hint = mending(error, str(error.filename or ""))
    hint = hint or "check owner, mode and free space; UA_MEMORY_DEBUG=1 tells more"
    found = CannotWrite(what, where=str(error.filename) if error.filename else None, hint=hint)
    if error.errno == ENOSPC and not found.where:
        found = output_lost(error, ended=False)
    return _report_error(call, found)


def _report_bug(call: Call, error: Exception) -> int:
    first = (str(error).splitlines() or [""])[0][:300]
    what = f"a bug in ua-memory: {type(error).__name__}{f': {first}' if first else ''}"
    hint = "run it again with UA_MEMORY_DEBUG=1 and report what it prints"
    return _report_error(call, UaMemoryError(what, hint=hint), "Bug")
