"""Changing a settings file: one value set, every other byte of it as it was. The home of tomlkit."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from ua_memory.errors import Malformed

_BOM = b"\xef\xbb\xbf"


def put(data: bytes, file: str, key: str, value: Any) -> bytes:
    """The file with a setting; `key` has a dot where it stands in a table. Malformed."""
    parts = key.split(".")

    def change(document: Any) -> None:
        here = document
        for part in parts[:-1]:
            if part not in here:
                here[part] = tomlkit.table()
            here = here[part]
        here[parts[-1]] = value

    def meant(before: Mapping[str, Any]) -> dict[str, Any]:
        return _with(before, parts, value)

    return edited(data, file, change, meant)


def edited(
    data: bytes,
    file: str,
    change: Callable[[Any], None],
    meant: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> bytes:
    """The file after a change of its document. Malformed where it is no TOML, or where what comes of it would
    not say what is `meant`, of what it said before."""
    bom, rest = (_BOM, data[len(_BOM) :]) if data.startswith(_BOM) else (b"", data)
    try:
        text = rest.decode()
        document = tomlkit.parse(text)
        change(document)
        new = tomlkit.dumps(document)
        fine = tomllib.loads(new) == meant(tomllib.loads(text))
    except (TOMLKitError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as error:
        raise Malformed(f"cannot be edited: {error}", where=file, mend="edit it by hand") from error
    if not fine:
        raise Malformed("this setting cannot be changed alone", where=file, mend="edit it by hand")
    return bom + new.encode()


def _with(before: Mapping[str, Any], parts: list[str], value: Any) -> dict[str, Any]:
    head, rest = parts[0], parts[1:]
    return {**before, head: _with(before.get(head, {}), rest, value) if rest else value}
