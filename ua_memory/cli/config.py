"""`ua-memory config`: the settings, and where each comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.config import Config

config_app = verbs.new()


@config_app.command(cls=verbs.Verb)
def config(
    ctx: typer.Context,
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="Print only the value of this setting.", show_default=False),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """List the settings and where each comes from.

    They are set in ua-memory.toml, some also by an environment variable, which goes before the file.
    """
    from ua_memory import config as settings
    from ua_memory import paths
    from ua_memory.cli.format import Piece, Screen, emit, note

    call = context.call_of(ctx)
    root = context.bank_root(call)
    loaded = settings.load(root, call.env)
    found = _rows(loaded, key)
    for name in loaded.unknown:
        note(call, f"{paths.SETTINGS} sets {name}, which is no setting")
    if call.as_json:
        everything = {"bank": str(root), "settings": found, "unknown": list(loaded.unknown)}
        return emit(call, found[0] if key is not None else everything)
    screen = Screen(call)
    if key is not None:
        return screen.raw(_said(found[0]["value"]))
    rows: list[list[Piece]] = []
    for one in found:
        set_by = (one["source"], "faint" if one["source"] == "default" else "good")
        rows.append([(one["key"], "strong"), set_by, _said(one["value"]) or ("not set", "faint")])
    screen.rows(rows)


def _rows(loaded: Config, key: str | None) -> list[dict[str, Any]]:
    """Each setting, or the one that is named. NotFound lists what there is."""
    from ua_memory import config as settings
    from ua_memory.errors import NotFound

    rows = []
    for name, toml, env, says, default in settings.settings():
        value, source = getattr(loaded, name), loaded.sources[name]
        if name == "chroma_url":
            value = re.sub(r"(?<=//)[^/@]*@", "…@", value)  # a token stands before the host
        row = {
            "key": toml,
            "value": _plain(value),
            "source": source,
            "default": _plain(default),
            "says": says,
        }
        rows.append(row | ({"env": env} if env else {}))
    if key is None:
        return rows
    chosen = [row for row in rows if row["key"] == key]
    if not chosen:
        raise NotFound(f"no setting {key!r}", mend="ua-memory config lists them")
    return chosen


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "\n".join(f"{name} = {text}" for name, text in value.items())
    return "\n".join(value) if isinstance(value, list) else str(value)
