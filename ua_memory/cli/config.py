"""`ua-memory config` and `ua-memory trust`: the settings, where each comes from, which of a bank count."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller, config, discovery
from ua_memory.caller import is_person
from ua_memory.cli import app
from ua_memory.config import sensitive, user_folder
from ua_memory.discovery import SETTINGS, USER
from ua_memory.errors import NotFound, Usage
from ua_memory.text.redaction import find
from ua_memory.views.output import Piece, Screen, agrees, commit, emit, note, outcome

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.caller import Call
    from ua_memory.config import Config
    from ua_memory.store.draft import Result


class Settings(app.Family):
    """`config` and `config KEY` list, as they did before there was anything else to do."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        words = [word for word in args if not word.startswith("-")]
        if "--help" not in args and (not words or words[0] not in self.commands):
            args = ["list", *args]
        return super().parse_args(ctx, args)


config_app = app.new(
    cls=Settings,
    help="Settings and their sources. `ua-memory config [KEY]` lists them.",
)
trust_app = app.new()


@config_app.command("list", cls=app.Verb)
def config_list(
    ctx: typer.Context,
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="Print only the value of this setting.", show_default=False),
    ] = None,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """List the settings and their sources.

    An environment variable overrides your own config.toml (in ~/.config/ua-memory), which overrides the
    bank's ua-memory.toml.
    """
    call = caller.call_of(ctx)
    root = caller.bank_root(call)
    loaded = caller.settings_of(call, root)
    found = _rows(loaded, key)
    for file, names in ((SETTINGS, loaded.unknown), (USER, loaded.unknown_user)):
        for name in names:
            note(call, f"{file} sets {name}, which is not a setting")
    if call.as_json:
        everything = {
            "bank": str(root), "user": str(_user_file(call)), "settings": found,
            "unknown": list(loaded.unknown), "unknownUser": list(loaded.unknown_user),
        }  # fmt: skip
        return emit(call, found[0] if key is not None else everything)
    screen = Screen(call)
    if key is not None:
        caller.tell_untrusted(call, loaded)
        return screen.raw(_said(found[0]["value"]))
    rows: list[list[Piece]] = []
    for one in found:
        set_by = (one["source"], "faint" if one["source"] == "default" else "good")
        rows.append([(one["key"], "strong"), set_by, _said(one["value"]) or ("not set", "faint")])
        if "untrusted" in one:
            rows.append(
                ["", (SETTINGS, "warn"), (f"{_said(one['untrusted'])}\nnot trusted: ua-memory trust", "warn")]
            )
    screen.rows(rows)


@config_app.command("set", cls=app.Verb)
def config_set(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The setting.", show_default=False)],
    value: Annotated[
        list[str],
        typer.Argument(metavar="VALUE...", help="Its value; for a list, each item.", show_default=False),
    ],
    user: Annotated[bool, typer.Option("--user", help="In your own config.toml, for all banks.")] = False,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Change a setting, and trust it.

    It is written to the bank's ua-memory.toml and committed; comments stay.
    """
    call = caller.call_of(ctx)
    root = caller.bank_root(call)
    name, typed = config.as_typed(key, value, user=user)
    result: Result | None = None
    if user:
        file = _user_file(call)
        before = discovery.read(file) if file.exists() else b""
        config.save(file, config.put(before, str(file), key, typed))
    else:
        file, result = _set_in_bank(call, key, typed)
        config.trust(root, caller.environment(call), caller.settings_of(call, root, lenient=True), [name])
    loaded = caller.settings_of(call, root, lenient=True)
    if call.as_json:
        more = {"revision": result.revision, "notes": list(result.notes)} if result else {}
        return emit(call, {**_rows(loaded, key)[0], "file": str(file), **more})
    done = (" (", commit(result.revision), ")") if result else ()
    Screen(call).line("Set ", (key, "strong"), f" to {_typed(typed)} in ", (str(file), "path"), *done)
    if result:
        outcome(call, result)
    if loaded.sources[name] != file.name:
        note(call, f"{loaded.sources[name]} also sets it, and overrides this file")
    return None


def _set_in_bank(call: Call, key: str, value: Any) -> tuple[Path, Result | None]:
    """Where it stands now, and the revision that put it there; None where it stood there already."""
    if find(str(value)):
        raise Usage(
            "this value holds a secret, and the bank's file is committed and synced", where=key,
            hint="add --user, or set its variable",
        )  # fmt: skip
    with caller.bank_of(call, lenient=True) as memory:
        with memory.store.revision("config", door="cli") as draft:
            draft.by_person = is_person(call)
            before = draft.read(SETTINGS) if draft.exists(SETTINGS) else b""
            after = config.put(before, SETTINGS, key, _plain(value))
            if after != before:
                draft.write(SETTINGS, after, restored=True)
                draft.subject = f"config: set {key}"
        return memory.store.bank.root / SETTINGS, draft.result if after != before else None


def _user_file(call: Call) -> Path:
    folder = user_folder(caller.environment(call))
    assert folder is not None, "a call has a home"
    return folder / USER


@trust_app.command(cls=app.Verb)
def trust(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Withdraw trust in this bank's settings.")] = False,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Trust the sensitive settings of a bank.

    A bank may come from somebody else. Its settings of endpoints, folders to read and text to leave out
    count only once you have agreed to them here; a changed value must be trusted again.
    """
    call = caller.call_of(ctx)
    root, env = caller.bank_root(call), caller.environment(call)
    loaded = caller.settings_of(call, root)
    if revoke:
        config.distrust(root, env, loaded)
        loaded = caller.settings_of(call, root)
    screen, fresh = Screen(call), bool(loaded.untrusted) and not revoke
    if not call.as_json:
        _show(screen, root, loaded)
    if fresh and not yes:
        if not call.reads_terminal or call.as_json:
            raise Usage("there is no terminal to ask", hint="review them, then: ua-memory trust --yes")
        fresh = agrees(call, "Trust these settings?")
    if fresh:
        config.trust(root, env, loaded)
    now = caller.settings_of(call, root)
    if call.as_json:
        emit(call, {"bank": str(root), "settings": [*_sensitive(root, now)]})
    elif fresh:
        screen.line("Trusted. A changed value must be trusted again.")
    elif revoke:
        screen.line("No setting of this bank is trusted any more.")


def _show(screen: Any, root: Path, loaded: Config) -> None:
    rows = [
        [
            (one["key"], "strong"),
            ("trusted", "good") if one["trusted"] else ("not trusted", "warn"),
            "\n".join(
                [
                    _said(one["value"]),
                    *(f"leads to {path}" for path in one.get("leadsTo", ()) if path not in one["value"]),
                ]
            ),
        ]
        for one in _sensitive(root, loaded)
    ]
    screen.rows(rows)
    if not rows:
        screen.line("This bank's ua-memory.toml has no sensitive settings.")


def _sensitive(root: Path, loaded: Config) -> list[dict[str, Any]]:
    """What the bank's file says of sensitive settings, where paths lead to, and whether it counts."""
    found = []
    for name, key in sensitive().items():
        value = loaded.untrusted.get(name, getattr(loaded, name))
        if name not in loaded.untrusted and loaded.sources[name] != SETTINGS:
            continue
        row = {"key": key, "value": _plain(_hidden(name, value)), "trusted": name not in loaded.untrusted}
        if name in ("extra_paths", "cross_encoder"):
            paths = value if isinstance(value, tuple) else (value,)
            row["leadsTo"] = [os.path.realpath(root / path) for path in paths]
        found.append(row)
    return found


def _rows(loaded: Config, key: str | None) -> list[dict[str, Any]]:
    """Each setting, or the one that is named. NotFound lists what there is."""
    rows = []
    for name, toml, env, says, default in config.settings():
        row = {
            "key": toml,
            "value": _plain(_hidden(name, getattr(loaded, name))),
            "source": loaded.sources[name],
            "default": _plain(default),
            "says": says,
        }
        if name in loaded.untrusted:
            row["untrusted"] = _plain(_hidden(name, loaded.untrusted[name]))
        rows.append(row | ({"env": env} if env else {}))
    if key is None:
        return rows
    chosen = [row for row in rows if row["key"] == key]
    if not chosen:
        raise NotFound(f"unknown setting {key!r}", hint="ua-memory config lists them")
    return chosen


def _hidden(name: str, value: Any) -> Any:
    return re.sub(r"(?<=//)[^/@]*@", "…@", value) if name == "chroma_url" else value  # a token stands there


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def _typed(value: Any) -> str:
    """A value in one line, as `config set` takes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else _said(value)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "\n".join(f"{name} = {text}" for name, text in value.items())
    return "\n".join(value) if isinstance(value, list) else str(value)
