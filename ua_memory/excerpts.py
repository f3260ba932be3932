"""Lines of a file as somebody names them: `PATH`, `PATH:12`, `PATH:12-20`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ua_memory import markdown
from ua_memory.errors import NotFound, Usage
from ua_memory.markdown.lines import readable
from ua_memory.paths import is_truth
from ua_memory.wording import counted


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file: `text` without its final newline, `line` to `end` of `lines` in all."""

    path: str
    line: int
    end: int
    lines: int
    text: str
    id: str | None = None


def cut(data: bytes, path: str, span: tuple[int, int] | str, block: str | None = None) -> Excerpt:
    """The lines of a file that a span means, all of them for ''. NotFound, Usage."""
    lines = markdown.parse(data, path).lines
    if isinstance(span, str):
        span = line_span(span, len(lines)) if span else (1, len(lines))
    text = readable("\n".join(lines[span[0] - 1 : span[1]]))
    return Excerpt(path, span[0], span[1], len(lines), text, block)


def split_target(target: str) -> tuple[str, str]:
    """`PATH:12-20` as path and span; the span is empty for a path alone, which may have a colon in it."""
    path, colon, span = target.rpartition(":")
    named = is_truth(path) or (path.startswith("/") and re.fullmatch("[0-9-]+", span))
    return (path, span) if colon and named and not is_truth(target) else (target, "")


def line_span(span: str, last: int) -> tuple[int, int]:
    """`12` or `12-20` as a range of lines, its end cut at `last`. Usage for anything else."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", span)
    if not match or not 1 <= int(match[1]) <= int(match[2] or match[1]):
        raise Usage(f"{span!r} is no line or range of lines", mend="use PATH:12 or PATH:12-20")
    if int(match[1]) > last:
        raise NotFound(f"the file has {counted(last, 'line')}", where=span)
    return int(match[1]), min(int(match[2] or match[1]), last)
