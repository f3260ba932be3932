"""A paragraph cut into sentences: what stands before citations rests on them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ua_memory import markdown

_PREFIX = re.compile(r"\A\s*(?:>\s*)*(?:\[![\w-]+\][^\n]*\n(?:\s*>\s*)?)?(?:[-*+]\s+|\d+[.)]\s+)?")


def plain(text: str) -> str:
    """A sentence without bullet, quotation marks of markdown and citations."""
    for each in reversed(list(markdown.citations(text))):
        text = text[: each.start] + text[each.end :]
    return re.sub(r"\n\s*>\s?", "\n", _PREFIX.sub("", text))


def cut(text: str) -> Iterator[tuple[int, int, list[markdown.Citation]]]:
    """(start, end, citations) of each stretch of text with the citations that stand behind it; what stands
    behind the last has none."""
    start = 0
    cited: list[markdown.Citation] = []
    for each in markdown.citations(text):
        if cited and text[cited[-1].end : each.start].strip(" \t\n,;"):
            yield start, cited[-1].end, cited
            start, cited = cited[-1].end, []
        cited.append(each)
    if cited:
        yield start, cited[-1].end, cited
        start = cited[-1].end
    rest = text[start:]
    if rest.strip():
        yield start + len(rest) - len(rest.lstrip()), len(text), []
