"""One table in TOML that somebody else keeps: added at the end, found again by its name, taken out.

Text is only ever added or cut in whole lines, and what comes of it is read and compared with what was meant.
So comments, order and layout of everything else stay, and no library has to know them.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from ua_memory.clients.json_edit import Broken
from ua_memory.clients.paragraph import added, newline_of, removed, rows_of


def table(text: str, name: tuple[str, str]) -> dict[str, Any] | None:
    """What a table says, None where there is none. Broken where the text is no TOML."""
    holder = _read(text).get(name[0], {})
    found = holder.get(name[1]) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else None


def put(text: str | None, name: tuple[str, str], values: dict[str, Any]) -> str:
    """The text with these values in the table; others that stand in it stay.

    Broken where the text is no TOML, or has the table in a form that lines cannot be added to.
    """
    before, present = _read(text or ""), table(text or "", name)
    if text and present is not None and all(present.get(key) == value for key, value in values.items()):
        return text
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    if present is None:
        new = added(text, [f"[{name[0]}.{name[1]}]", *lines])
    else:
        new = _changed(text or "", name, dict(zip(values, lines, strict=True)))
    held = before.get(name[0])
    meant = {**(held if isinstance(held, dict) else {}), name[1]: {**(present or {}), **values}}
    _same(text or "", new, name, {**before, name[0]: meant})
    return new


def cut(text: str, name: tuple[str, str]) -> str | None:
    """The text without the table and the tables below it, and without the empty line before it.

    None where nothing is left of a file that we had made.
    """
    before = _read(text)
    if table(text, name) is None:
        return text
    rows = rows_of(text)
    while found := _span(rows, name):
        rows = removed(rows, *found)
    new = "".join(rows)
    rest = {key: value for key, value in before[name[0]].items() if key != name[1]}
    meant = {key: value for key, value in before.items() if key != name[0]}
    _same(text, new, name, {**meant, name[0]: rest} if rest else meant)
    return new if new or not text.endswith("\n") else None


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.lstrip("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        why = str(error).partition(" (at ")[0]
        line = int(found[1]) if found else text.count("\n") + 1
        raise Broken(line, why[:1].lower() + why[1:]) from error
    except RecursionError as error:
        raise Broken(1, "it is nested too deep") from error


def _same(text: str, new: str, name: tuple[str, str], meant: dict[str, Any]) -> None:
    """Broken unless the new text says what was meant: the table may be written in another way than as one."""
    try:
        if _read(new) == meant or _read(new) == {**meant, name[0]: {}}:
            return
    except Broken:
        pass
    lines = text.splitlines()
    line = next((n for n, row in enumerate(lines, 1) if name[0] in row), 1)
    raise Broken(line, f"{name[0]} is written in a way that cannot be changed line by line")


def _header(name: tuple[str, str]) -> re.Pattern[str]:
    first, second = (rf"(?:{re.escape(each)}|\"{re.escape(each)}\"|'{re.escape(each)}')" for each in name)
    return re.compile(rf"\ufeff?\s*\[\s*{first}\s*\.\s*{second}\s*[.\]]")


def _span(rows: list[str], name: tuple[str, str]) -> tuple[int, int] | None:
    """The lines [start, end) of the first of the tables with this name; comments behind it are not its."""
    header = _header(name)
    start = next((n for n, row in enumerate(rows) if header.match(row)), None)
    if start is None:
        return None
    end = start + 1
    for n in range(start + 1, len(rows)):
        row = rows[n].strip()
        if row.startswith("["):
            break
        if row and not row.startswith("#"):
            end = n + 1
    return start, end


def _changed(text: str, name: tuple[str, str], lines: dict[str, str]) -> str:
    """The text with some lines of the table in place of those of the same keys, or behind its header."""
    rows, newline = rows_of(text), newline_of(text)
    start, end = _span(rows, name) or (0, 0)
    for key, line in lines.items():
        there = next((n for n in range(start + 1, end) if re.match(rf"\s*\"?{key}\"?\s*=", rows[n])), None)
        if there is None:
            rows.insert(start + 1, line + newline)
            end += 1
        else:
            rows[there] = line + (newline if rows[there].endswith("\n") else "")
    return "".join(rows)
