"""Hermes's settings: a memory provider in its plugins' folder. Seen with 0.19.0.

Which provider is used stands in config.yaml, and there can be one only. Hermes itself sets it (`hermes config
set`); taken out it is by us, since Hermes would go on asking for a provider that is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

from ua_memory.clients.paragraph import rows_of
from ua_memory.clients.settings import NAME, Piece, Target, whole_file, with_command

_HEAD = re.compile(r"memory:[ \t]*(?:#.*)?[\r\n]*")
_OURS = re.compile(rf"([ \t]+)provider:[ \t]*(['\"]?){NAME}\2[ \t]*(?:#.*)?[\r\n]*")


def target(home: str, command: Sequence[str], plugin: Mapping[str, str]) -> Target:
    """A person's own provider; `home` is ~/.hermes, `plugin` texts by name."""
    folder = f"{home}/plugins/{NAME}"
    pieces = []
    for name, text in sorted(plugin.items()):
        shown = with_command(text, command) if name.endswith(".py") else text
        pieces.append(whole_file(f"{folder}/{name}", "memory provider", shown, NAME, folder))
    notes = (f"have Hermes use it: hermes config set memory.provider {NAME}",)
    chosen = Piece(f"{home}/config.yaml", "memory.provider", lambda text: text, _unchosen)
    return Target("hermes", tuple(pieces), notes, left=(chosen,))


def _unchosen(text: str | None) -> str | None:
    """config.yaml without its choice of our provider, and without the `memory:` that held nothing else; every
    other line as it was."""
    rows = rows_of(text or "")
    start = next((n for n, row in enumerate(rows) if _HEAD.fullmatch(row)), len(rows))
    below = [*takewhile(lambda n: rows[n][0] in " \t#\r\n", range(start + 1, len(rows)))]
    values = [n for n in below if rows[n].strip() and rows[n].strip()[0] != "#"]
    found = ((n, _OURS.fullmatch(rows[n])) for n in values)
    ours = {n for n, row in found if row and not rows[values[0]].removeprefix(row[1])[:1].isspace()}
    gone = ours | ({start} if ours == set(values) else set()) if ours else ours
    return None if text is None else "".join(row for n, row in enumerate(rows) if n not in gone)
