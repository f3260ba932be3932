"""Hermes's settings: a memory provider in its plugins' folder. Seen with 0.19.0.

Which provider is used stands in config.yaml, and there can be one only. Hermes itself sets it (`hermes config
set`), so that file is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ua_memory.clients.settings import NAME, Target, whole_file, with_command


def target(home: str, command: Sequence[str], plugin: Mapping[str, str]) -> Target:
    """A person's own provider; `home` is ~/.hermes, `plugin` texts by name."""
    folder = f"{home}/plugins/{NAME}"
    pieces = []
    for name, text in sorted(plugin.items()):
        shown = with_command(text, command) if name.endswith(".py") else text
        pieces.append(whole_file(f"{folder}/{name}", "memory provider", shown, NAME, folder))
    notes = (f"have Hermes use it: hermes config set memory.provider {NAME}",)
    return Target("hermes", tuple(pieces), notes)
