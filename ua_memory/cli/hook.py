"""`hook`, `completion`, and the shell functions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer
from typer import Argument, Option

from ua_memory import caller, config
from ua_memory.cli import app, fast
from ua_memory.cli.app import HELP, LISTED, group
from ua_memory.errors import UaMemoryError, Usage
from ua_memory.hooks import capture
from ua_memory.index import filters
from ua_memory.index.items import open_read_only
from ua_memory.index.sync import TAG_COUNTS_SQL
from ua_memory.mcp import tools
from ua_memory.records import ORIGINS
from ua_memory.text.patterns import data_text
from ua_memory.views import output

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.memory import Memory


# -- hook --------------------------------------------------------------------------------------------------
# `ua-memory hook`: what an agent's client is told when something happens there.
#
# A hook never stands in the way: whatever goes wrong, nothing is printed, the exit code is 0, and why
# stands in the bank's `local/hook.log`. The fast path reads standard input before it comes here.


hook_app = app.new()


@hook_app.command(cls=app.Verb, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def hook(
    ctx: typer.Context,
    client: str = Option("", metavar="NAME", help="The client (default: detected from the event)."),
    pid: int = Option(0, hidden=True),
    modelled: bool = Option(False, "--modelled", hidden=True),
    bank: app.Bank = None,
) -> None:
    """Handle an event of an agent's client.

    The event is JSON on standard input: SessionStart, UserPromptSubmit, Stop, PreCompact and SessionEnd of
    Claude Code, Codex and others, or Gemini CLI's own names for them. At a start it prints core memory,
    the pages and the queue, at a prompt what memory has on it. New turns are captured after each
    answer, and flushed at a compaction and at the end of the session. On any failure nothing is printed, the
    exit code is 0, and local/hook.log says why. `ua-memory hook shell zsh` (or bash)
    prints functions for that shell.
    """
    call = caller.call_of(ctx)
    if ctx.args[:1] == ["shell"]:
        functions(call, " ".join(ctx.args[1:]))
    elif call.reads_terminal:
        call.stderr.write("ua-memory: a client's hook calls this, with JSON on standard input\n")
    elif capture.answer_event(call, client, pid, modelled):
        raise typer.Exit(fast.HAND_OVER)


# -- shell -------------------------------------------------------------------------------------------------
# What a shell takes from us: completions (`ua-memory completion`) and functions (`ua-memory hook shell`).
#
# A completion script asks back with the words of the line, so it never gets old and costs nothing until Tab
# is pressed. Verbs are named from the table of `app`; only the verb that stands on the line is loaded.


completion_app = app.new()

COMPLETED, BOUND = ("bash", "zsh", "fish"), ("bash", "zsh")
"""The shells that have completions, and those that have a key. Each completion script (`data/shell/`) calls
`completion SHELL -- WORD…`, the last word being the one that the cursor is at."""


@completion_app.command(cls=app.Verb)
def completion(
    ctx: typer.Context,
    shell: str = Argument(..., metavar="SHELL", help="bash, zsh or fish."),
    words: list[str] | None = Argument(None, hidden=True),
) -> None:
    """Print shell completions.

    For bash, in ~/.bashrc: eval "$(ua-memory completion bash)". For zsh, in
    ~/.zshrc below compinit: eval "$(ua-memory completion zsh)". For fish:
    ua-memory completion fish > ~/.config/fish/completions/ua-memory.fish
    """
    call = caller.call_of(ctx)
    if shell not in COMPLETED:
        raise Usage(f"no completions for {shell!r}", hint="ua-memory completion bash, zsh or fish")
    if not words:
        call.stdout.write(data_text(f"shell/completion.{shell}"))
        return
    for value, does in [*values(call, words[:-1], words[-1]), *candidates(words[:-1], words[-1])]:
        call.stdout.write(_line(shell, value, does) + "\n")


def _line(shell: str, value: str, does: str) -> str:
    if shell == "bash" or not does:
        return value.replace(":", r"\:") if shell == "zsh" else value
    return f"{value}\t{does}" if shell == "fish" else f"{value.replace(':', chr(92) + ':')}:{does}"


def candidates(before: list[str], word: str) -> list[tuple[str, str]]:
    """What a word may become behind those before it: (value, what it does)."""
    from types import SimpleNamespace

    from typer.completion import shell_completion  # type: ignore[attr-defined]

    if not word.startswith("-") and LISTED.keys().isdisjoint(before):
        if before[-1:] == ["--bank"]:
            return []
        return [(name, listed.does) for name, listed in LISTED.items() if name.startswith(word)]
    # The class itself is abstract: it wants to know a shell's variables, which the scripts spare us.
    asked: Any = SimpleNamespace(cli=group(), ctx_args={**HELP}, prog_name="ua-memory")
    found = shell_completion.ShellComplete.get_completions(asked, before, word)
    return [(each.value, " ".join((each.help or "").split())) for each in found if each.type == "plain"]


OFFERED = 40
"""Values that are offered at most of what there may be many of: the newest, or the most frequent."""
Values = list[tuple[str, str]]


def values(call: Call, before: list[str], word: str) -> Values:
    """What of the bank the word may become: (value, what it is). [] where a value of another kind is wanted,
    and where the bank cannot be read."""
    words = [each for each in before if not each.startswith("-")]
    verb, rest = words[0] if words else "", tuple(words[1:2])
    if before and before[-1] in BY_OPTION:
        wanted = BY_OPTION[before[-1]]
    elif len(words) == 1 + len(rest) and (verb, *rest) in BY_VERB:
        wanted = BY_VERB[verb, *rest]
    else:
        return []
    found = [(name, "") for name in FIXED[wanted]()] if wanted in FIXED else []
    if not found:
        with contextlib.suppress(UaMemoryError, OSError, sqlite3.Error), caller.bank_of(call) as memory:
            found = OF_BANK[wanted](memory, word)
    found = [row for row in found if row[0].startswith(word)]
    return found if wanted in FIXED else found[:OFFERED]


def _of_index(memory: Memory, sql: str, *given: str) -> list[tuple[Any, ...]]:
    """Rows of the index as it is: a Tab waits for no update."""
    folder = memory.store.bank.index
    current = (folder / "current").read_text("ascii").strip()
    with contextlib.closing(open_read_only(folder / current / "words.db")) as db:
        return db.execute(sql, given).fetchall()


def _tags(memory: Memory, _: str) -> Values:
    return [(tag, output.count(many, "item")) for tag, many in _of_index(memory, TAG_COUNTS_SQL)]


def _ids(memory: Memory, word: str) -> Values:
    """Ids of the newest facts; without a caret the files, too."""
    sql = "SELECT id, text FROM items WHERE id != '' AND record = 'fact' AND id LIKE ? || '%'"
    bare, order = word.removeprefix("^"), f"ORDER BY date DESC, line DESC LIMIT {OFFERED}"
    ids = [(f"^{block}", _short(text)) for block, text in _of_index(memory, f"{sql} {order}", bare)]
    return ids if word.startswith("^") else [*_files(memory, word), *ids]


def _files(memory: Memory, _: str) -> Values:
    return [(path, "") for path in sorted((file.path for file in memory.store.files()), reverse=True)]


def _names(memory: Memory, word: str) -> Values:
    """Names, which the index has in small letters, with the letters that were typed."""
    sql = "SELECT name FROM names WHERE name LIKE ? || '%' GROUP BY name ORDER BY count(*) DESC"
    found = [name for (name,) in _of_index(memory, sql, word.casefold()) if " " not in name]
    return [(word + name[len(word) :], "") for name in found]


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:59]}…"


OF_BANK: Mapping[str, Callable[[Memory, str], Values]] = {
    "tags": _tags, "ids": _ids, "files": _files, "names": _names,
    "revisions": lambda memory, _: [(o.id[:7], _short(o.subject)) for o in memory.history.log(limit=OFFERED)],
    "pages": lambda memory, _: [(one.id, one.name) for one in memory.pages.list()],
    "models": lambda memory, _: [(one.id, one.name) for one in memory.models.list()],
    "blocks": lambda memory, _: [(one.name, "") for one in memory.core.list() if " " not in one.name],
    "sessions": lambda memory, _: [(o.name, _short(o.title)) for o in islice(memory.sessions.all(), OFFERED)],
}  # fmt: skip
FIXED: Mapping[str, Callable[[], Iterable[str]]] = {
    "kinds": lambda: filters.KINDS, "origins": lambda: ORIGINS, "matches": lambda: config.MATCHES,
    "tools": lambda: (*tools.SETS, *tools.TOOLS), "keys": lambda: (key for _, key, *_ in config.settings()),
}  # fmt: skip
BY_OPTION = {
    "--tag": "tags", "--kind": "kinds", "--source": "origins", "--origin": "origins", "--by": "ids",
    "--why-not": "ids", "--before": "revisions",
    "--tags-match": "matches", "--person": "names", "--entity": "names", "--tools": "tools",
    "--session": "sessions",
}  # fmt: skip
_EDITED = ("get", "update", "delete", "refresh")
BY_VERB: Mapping[tuple[str, ...], str] = {
    ("config",): "keys", ("config", "get"): "keys", ("config", "set"): "keys",
    ("undo",): "revisions", ("diff",): "revisions", ("blame",): "files",
    **{(verb,): "ids" for verb in ("get", "edit", "open", "why", "retire", "vouch", "forget", "log")},
    **{("pages", verb): "pages" for verb in _EDITED}, **{("models", verb): "models" for verb in _EDITED},
    **{("core", verb): "blocks" for verb in ("get", "replace")},
    **{("entities", verb): "names" for verb in ("show", "merge", "alias", "split", "rename")},
    **{("sessions", verb): "sessions" for verb in ("get", "forget")},
}  # fmt: skip
"""Which values stand behind an option, and behind a verb and its sub-verb."""


def functions(call: Call, shell: str) -> None:
    """Print the functions and the key for a shell. Usage for one that has none."""
    if shell not in BOUND:
        raise Usage(f"no functions for {shell!r}", hint="ua-memory hook shell bash, or zsh")
    call.stdout.write(data_text("shell/functions.sh") + data_text(f"shell/keys.{shell}"))
