"""`hook`, `completion`, and the shell functions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer

from ua_memory import caller, config
from ua_memory.cli import app, fast
from ua_memory.cli.app import HELP_SETTINGS, VERB_ENTRIES, argument, command_line, flag, option
from ua_memory.errors import UaMemoryError, Usage
from ua_memory.hooks import capture
from ua_memory.index import filters
from ua_memory.index.items import open_read_only
from ua_memory.index.sync import TAG_COUNTS_SQL
from ua_memory.mcp import tools
from ua_memory.records import ORIGINS
from ua_memory.text.patterns import data_text
from ua_memory.text.wording import shorten
from ua_memory.views import output

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.memory import Memory


# -- hook --------------------------------------------------------------------------------------------------
# `ua-memory hook`: answer an event of an agent's client.
#
# A hook must not stop the client: on any failure nothing is printed, the exit code is 0, and the reason is in
# the bank's `local/hook.log`. `cli.fast` has read standard input already.


hook_app = app.new_app()


@hook_app.command(cls=app.Verb, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def hook(
    ctx: typer.Context,
    client: str = option("NAME", "The client (default: detected from the event).", ""),
    pid: int = option("", "", 0, hidden=True),
    modelled: bool = flag("--modelled", "", hidden=True),
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
        print_shell_functions(call, " ".join(ctx.args[1:]))
    elif call.reads_terminal:
        call.stderr.write("ua-memory: clients run this command as a hook, with JSON on standard input\n")
    elif capture.answer_event(call, client, pid, modelled):
        raise typer.Exit(fast.FLUSH_DUE)


# -- shell -------------------------------------------------------------------------------------------------
# Completions (`ua-memory completion`) and shell functions (`ua-memory hook shell`).
#
# A completion script calls us with the words of the line, so it is never outdated and costs nothing until Tab
# is pressed. Verbs come from the table in `app`; only the module of the verb on the line is loaded.


completion_app = app.new_app()

COMPLETION_SHELLS, FUNCTION_SHELLS = ("bash", "zsh", "fish"), ("bash", "zsh")
"""Shells with completions, and with functions. A completion script (`data/shell/`) calls
`completion SHELL -- WORD…`; the last word is the one at the cursor."""


@completion_app.command(cls=app.Verb)
def completion(
    ctx: typer.Context,
    shell: str = argument("SHELL", "bash, zsh or fish."),
    words: list[str] | None = argument(None, "", None, hidden=True),
) -> None:
    """Print shell completions.

    For bash, in ~/.bashrc: eval "$(ua-memory completion bash)". For zsh, in
    ~/.zshrc below compinit: eval "$(ua-memory completion zsh)". For fish:
    ua-memory completion fish > ~/.config/fish/completions/ua-memory.fish
    """
    call = caller.call_of(ctx)
    if shell not in COMPLETION_SHELLS:
        raise Usage(f"no completions for {shell!r}", hint="ua-memory completion bash, zsh or fish")
    if not words:
        call.stdout.write(data_text(f"shell/completion.{shell}"))
        return
    before, word = words[:-1], words[-1]
    for value, does in [*value_completions(call, before, word), *command_completions(before, word)]:
        call.stdout.write(_format_completion(shell, value, does) + "\n")


def _format_completion(shell: str, value: str, does: str) -> str:
    if shell == "bash" or not does:
        return value.replace(":", r"\:") if shell == "zsh" else value
    return f"{value}\t{does}" if shell == "fish" else f"{value.replace(':', chr(92) + ':')}:{does}"


def command_completions(before: list[str], word: str) -> list[tuple[str, str]]:
    """The verbs and options that complete a word after those before it: (value, help)."""
    from types import SimpleNamespace

    from typer.completion import shell_completion  # type: ignore[attr-defined]

    if not word.startswith("-") and VERB_ENTRIES.keys().isdisjoint(before):
        if before[-1:] == ["--bank"]:
            return []
        return [(name, listed.does) for name, listed in VERB_ENTRIES.items() if name.startswith(word)]
    # ShellComplete is abstract: it would read a shell's variables, which our scripts pass as arguments.
    asked: Any = SimpleNamespace(cli=command_line(), ctx_args={**HELP_SETTINGS}, prog_name="ua-memory")
    found = shell_completion.ShellComplete.get_completions(asked, before, word)
    return [(each.value, " ".join((each.help or "").split())) for each in found if each.type == "plain"]


COMPLETION_LIMIT = 40
"""Values that are offered at most: the newest, or the most frequent."""
Completions = list[tuple[str, str]]


def value_completions(call: Call, before: list[str], word: str) -> Completions:
    """The bank's values that complete a word: (value, description). [] if no value of the bank is expected,
    or the bank cannot be read."""
    words = [each for each in before if not each.startswith("-")]
    verb, rest = words[0] if words else "", tuple(words[1:2])
    if before and before[-1] in OPTION_VALUES:
        wanted = OPTION_VALUES[before[-1]]
    elif len(words) == 1 + len(rest) and (verb, *rest) in VERB_VALUES:
        wanted = VERB_VALUES[verb, *rest]
    else:
        return []
    found = [(name, "") for name in FIXED_VALUES[wanted]()] if wanted in FIXED_VALUES else []
    if not found:
        with contextlib.suppress(UaMemoryError, OSError, sqlite3.Error), caller.bank_of(call) as memory:
            found = BANK_VALUES[wanted](memory, word)
    found = [row for row in found if row[0].startswith(word)]
    return found if wanted in FIXED_VALUES else found[:COMPLETION_LIMIT]


def _query_index(memory: Memory, sql: str, *given: str) -> list[tuple[Any, ...]]:
    """Query the word index without updating it first."""
    folder = memory.store.bank.index
    current = (folder / "current").read_text("ascii").strip()
    with contextlib.closing(open_read_only(folder / current / "words.db")) as db:
        return db.execute(sql, given).fetchall()


def _tag_completions(memory: Memory, _: str) -> Completions:
    return [(tag, output.count(many, "item")) for tag, many in _query_index(memory, TAG_COUNTS_SQL)]


def _id_completions(memory: Memory, word: str) -> Completions:
    """Ids of the newest facts; before them the files, unless the word begins with ^."""
    sql = "SELECT id, text FROM items WHERE id != '' AND record = 'fact' AND id LIKE ? || '%'"
    bare, order = word.removeprefix("^"), f"ORDER BY date DESC, line DESC LIMIT {COMPLETION_LIMIT}"
    ids = [(f"^{block}", _shorten(text)) for block, text in _query_index(memory, f"{sql} {order}", bare)]
    return ids if word.startswith("^") else [*_file_completions(memory, word), *ids]


def _file_completions(memory: Memory, _: str) -> Completions:
    return [(path, "") for path in sorted((file.path for file in memory.store.files()), reverse=True)]


def _name_completions(memory: Memory, word: str) -> Completions:
    """Entity names, lower-case in the index, with the typed letters in front."""
    sql = "SELECT name FROM names WHERE name LIKE ? || '%' GROUP BY name ORDER BY count(*) DESC"
    found = [name for (name,) in _query_index(memory, sql, word.casefold()) if " " not in name]
    return [(word + name[len(word) :], "") for name in found]


def _revision_completions(memory: Memory, _: str) -> Completions:
    return [(one.id[:7], _shorten(one.subject)) for one in memory.history.log(limit=COMPLETION_LIMIT)]


def _session_completions(memory: Memory, _: str) -> Completions:
    sessions = islice(memory.sessions.all(), COMPLETION_LIMIT)
    return [(one.name, _shorten(one.title)) for one in sessions]


def _shorten(text: str) -> str:
    return shorten(" ".join(text.split()), 60)


BANK_VALUES: Mapping[str, Callable[[Memory, str], Completions]] = {
    "tags": _tag_completions, "ids": _id_completions, "files": _file_completions, "names": _name_completions,
    "revisions": _revision_completions,
    "pages": lambda memory, _: [(one.id, one.name) for one in memory.pages.list()],
    "models": lambda memory, _: [(one.id, one.name) for one in memory.models.list()],
    "blocks": lambda memory, _: [(one.name, "") for one in memory.core.list() if " " not in one.name],
    "sessions": _session_completions,
}  # fmt: skip
FIXED_VALUES: Mapping[str, Callable[[], Iterable[str]]] = {
    "kinds": lambda: filters.KINDS, "origins": lambda: ORIGINS, "matches": lambda: config.MATCHES,
    "tools": lambda: (*tools.SETS, *tools.TOOLS), "keys": lambda: (one.key for one in config.settings()),
}  # fmt: skip
OPTION_VALUES = {
    "--tag": "tags", "--kind": "kinds", "--source": "origins", "--origin": "origins", "--by": "ids",
    "--why-not": "ids", "--before": "revisions",
    "--tags-match": "matches", "--person": "names", "--entity": "names", "--tools": "tools",
    "--session": "sessions",
}  # fmt: skip
VERB_VALUES: Mapping[tuple[str, ...], str] = {
    ("config",): "keys", ("config", "get"): "keys", ("config", "set"): "keys",
    ("undo",): "revisions", ("diff",): "revisions", ("blame",): "files",
    **{(verb,): "ids" for verb in ("get", "edit", "open", "why", "retire", "vouch", "forget", "log")},
    **{(kind, verb): kind for kind in ("pages", "models") for verb in ("get", "update", "delete", "refresh")},
    **{("core", verb): "blocks" for verb in ("get", "replace")},
    **{("entities", verb): "names" for verb in ("show", "merge", "alias", "split", "rename")},
    **{("sessions", verb): "sessions" for verb in ("get", "forget")},
}  # fmt: skip
"""The kind of values after an option, and after a verb and its sub-verb."""


def print_shell_functions(call: Call, shell: str) -> None:
    """Print the functions and the key binding for a shell. Usage for another shell."""
    if shell not in FUNCTION_SHELLS:
        raise Usage(f"no functions for {shell!r}", hint="ua-memory hook shell bash, or zsh")
    call.stdout.write(data_text("shell/functions.sh") + data_text(f"shell/keys.{shell}"))
