"""The front matter of a file: found, read, and changed key by key without touching anything else.

python-frontmatter (and YAML beneath it) gets the header's text only. It would sort keys, drop
comments, turn `007` into 7, CRLF into LF and eat the body's first blank lines; so the boundaries,
the body's bytes and every line whose key does not change are kept here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ua_memory.errors import Malformed
from ua_memory.markdown.lines import BLANK

LONGEST = 65_536
"""Characters. A longer header is none: YAML in pure Python is slow, and nobody writes one by hand."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.,;()'?! -]*")
_YAML_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What YAML raises besides its own error for odd dates, keys, numbers and depths."""


@dataclass(frozen=True, slots=True)
class Header:
    """`values` as YAML reads them; `raw` with every scalar as it is written, so that `007` stays so;
    `size` in lines, both `---` included; `problem` with its line from 0 if it cannot be read."""

    values: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    problem: tuple[int, str] | None = None

    def text(self, key: str) -> str | None:
        """A value that is one word or sentence, as written; None for all others."""
        value = self.raw.get(key)
        return value if isinstance(value, str) and value else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A value that is a list, or text with commas, as its parts."""
        value = self.raw.get(key)
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        words = [part for part in parts if isinstance(part, str) and part.strip()]
        return tuple(part.strip() for part in words) if isinstance(value, str) else tuple(words)

    def tags(self) -> tuple[str, ...]:
        """What `tags` or `tag`, in upper or lower case, names, as Obsidian reads it: a list, or text with
        commas or blanks between, each with or without `#`."""
        found: list[Any] = []
        for value in (value for key, value in self.raw.items() if key.lower() in ("tags", "tag")):
            found += re.split(r"[,\s]+", value) if isinstance(value, str) else ()
            found += value if isinstance(value, list) else ()
        words = (part.strip().lstrip("#") for part in found if isinstance(part, str))
        return tuple(dict.fromkeys(filter(None, words)))


def read_header(lines: Sequence[str]) -> Header:
    """The front matter of a file's lines; without one, an empty Header of size 0."""
    if not lines or lines[0].rstrip(BLANK) != "---":
        return Header()
    end = next((k for k in range(1, len(lines)) if lines[k].rstrip(BLANK) in ("---", "...")), 0)
    if not end:
        if len(lines) > 1 and _KEY_LINE.match(lines[1]):
            return Header(problem=(0, "this front matter is not closed by `---`; it is read as text"))
        return Header()
    text = "\n".join(lines[1:end])
    if len(text) > LONGEST:
        return Header(size=end + 1, problem=(0, f"this front matter is longer than {LONGEST} characters"))
    return _load(text, end + 1)


_KEY_LINE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*:(?:[ \t]|$)")


def _load(text: str, size: int) -> Header:
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    try:
        values = YAMLHandler().load(text, Loader=yaml.SafeLoader) if text.strip() else {}
        raw = YAMLHandler().load(text, Loader=yaml.BaseLoader) if text.strip() else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(size - 1, 1 + text.count("\n", 0, mark.index)) if mark else 0
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "no YAML"
        return Header(size=size, problem=(line, f"this front matter cannot be read: {what}"))
    except _YAML_ERRORS as error:
        return Header(size=size, problem=(0, f"this front matter cannot be read: {type(error).__name__}"))
    if values is None and raw in (None, ""):
        values, raw = {}, {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        return Header(
            problem=(
                0,
                "what stands between the first two --- is no list of `key: value`; it is read as text",
            )
        )
    return Header(values, raw, size)


# writing


def write_value(value: Any) -> str:
    """A value on one line of YAML: plain where that is safe, else as JSON, which YAML includes."""
    if isinstance(value, str):
        return value if _is_plain(value) else _json(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_in_list, value))}]"
    return _json(value)


def _in_list(value: Any) -> str:
    return write_value(value) if not isinstance(value, str) or "," not in value else _json(value)


def _is_plain(text: str) -> bool:
    import yaml

    return bool(_PLAIN.fullmatch(text)) and text == text.strip() and yaml.safe_load(text) == text


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return re.sub(
        "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", _escaped, text
    )


def _escaped(match: re.Match[str]) -> str:
    number = ord(match.group())
    return "\\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"


def write_header(values: Mapping[str, Any]) -> list[str]:
    """The lines of a new front matter."""
    return ["---", *(f"{key}: {write_value(value)}" for key, value in values.items()), "---"]


def change_header(lines: Sequence[str], changes: Mapping[str, Any]) -> tuple[int, list[str]]:
    """(Lines the header takes now, its new lines): each key of `changes` set, or taken out if None.
    Only lines of changed keys differ. Malformed if the header cannot be read or so changed."""
    old = read_header(lines)
    if old.problem:
        raise Malformed(old.problem[1], mend="correct the lines between the two --- by hand")
    if not old.size:
        return 0, write_header({key: value for key, value in changes.items() if value is not None})
    text = "\n".join(lines[1 : old.size - 1])
    new = _changed(text, {k: v for k, v in changes.items() if k not in old.values or old.values[k] != v})
    result = [lines[0], *(new.split("\n") if new else []), lines[old.size - 1]]
    wanted = {key: value for key, value in {**old.values, **changes}.items() if value is not None}
    if _comparable(read_header(result).values) != _comparable(wanted):
        raise Malformed("this front matter cannot be changed safely", mend="edit it by hand")
    return old.size, result


def _comparable(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=repr)


def _changed(text: str, changes: Mapping[str, Any]) -> str:
    import yaml

    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
        raise Malformed("this front matter uses YAML aliases", mend="edit it by hand")
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    if isinstance(node, yaml.CollectionNode) and node.flow_style:
        raise Malformed("this front matter is written as one {…}", mend="edit it by hand")
    starts = [key.start_mark.index for key, _ in pairs]
    for number in reversed(range(len(pairs))):
        key, value = pairs[number]
        if key.value in changes:
            end = starts[number + 1] if number + 1 < len(pairs) else len(text)
            text = _replaced(text, starts[number], end, value, key.value, changes[key.value])
    known = {key.value for key, _ in pairs}
    added = [f"{k}: {write_value(v)}" for k, v in changes.items() if k not in known and v is not None]
    return "\n".join([*([text] if text else []), *added])


def _replaced(text: str, start: int, end: int, node: Any, key: str, new: Any) -> str:
    """`text` with the entry from `start` set to `new`; comments behind it and below it stay."""
    first, last = node.start_mark.index, node.end_mark.index
    if new is not None and last > first and "\n" not in text[start:last]:
        return text[:first] + write_value(new) + text[last:]
    lines = text[start:end].split("\n")
    keep = len(lines)
    while keep > 1 and (not lines[keep - 1].strip() or lines[keep - 1].startswith("#")):
        keep -= 1
    if new is None and end == len(text):
        return text[:start].removesuffix("\n") + "".join("\n" + line for line in lines[keep:])
    head = [] if new is None else [f"{key}: {write_value(new)}"]
    return text[:start] + "\n".join([*head, *lines[keep:]]) + text[end:]
