"""Sentences of a page or of core memory without those that rest on what goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ua_memory import markdown
from ua_memory.forgetting.words import Needle
from ua_memory.lineage.sentences import cut, plain

_PREFIX = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTED = re.compile(r"\s*>")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+")

Names = Callable[[str, Collection[str]], bool]
"""Whether a sentence names what none of these ids says."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A paragraph or item after it: what is left ('' for nothing), the sentences that went, those that lost a
    citation."""

    text: str
    gone: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.gone or self.revised)


def without(text: str, ids: Collection[str], needles: Sequence[Needle], names: Names) -> Cut:
    """A block of prose without the sentences that rest on these ids alone, that say one of the texts, or that
    name what only those ids say; another loses the citation."""
    hits = [span for needle in needles for span in needle.spans(text)]
    kept: list[str] = []
    gone: list[str] = []
    revised: list[str] = []
    end, opens = 0, False
    for start, stop, cited in _parts(text):
        lead, sentence, end = text[end:start], text[start:stop], stop
        lost = [each for each in cited if each.ref in ids or each.id in ids]
        rest = [each.ref for each in cited if each not in lost]
        said = any(first < stop and start < last for first, last in hits)
        if said or (lost and (not rest or names(plain(sentence), rest))):
            gone.append(_said(sentence))
            opens = opens or start == 0
            continue
        if lost:
            revised.append(_said(sentence))
            sentence = _unlinked(sentence, start, lost)
        kept.append(lead + sentence)
    if not gone and not revised:
        return Cut(text)
    left = "".join(kept) + text[end:]
    prefix = match[0] if (match := _PREFIX.match(text)) else ""
    # Where the first sentence went, the bullet went with it.
    body = left.lstrip() if opens else left.removeprefix(prefix)
    return Cut(prefix + body if any(map(str.isalnum, body)) else "", tuple(gone), tuple(revised))


def _said(sentence: str) -> str:
    return plain(sentence).strip(" \t\n,;")


def _parts(text: str) -> Iterator[tuple[int, int, list[markdown.Citation]]]:
    """The sentences of a block, as far as they can be taken apart: those in front of citations together, and
    a quotation as a whole."""
    if _QUOTED.match(text):
        yield 0, len(text), list(markdown.citations(text))
        return
    for start, stop, cited in cut(text):
        at = start
        for end in () if cited else _ENDS.finditer(text, start, stop):
            yield at, end.start(), cited
            at = end.end()
        yield at, stop, cited


def _unlinked(sentence: str, start: int, lost: Sequence[markdown.Citation]) -> str:
    """A sentence without some of its citations, and without what stood between them and those that stay."""
    for each in reversed(lost):
        before, after = sentence[: each.start - start], sentence[each.end - start :]
        before = re.sub(r"[ \t]*[,;]?[ \t]*$", "", before) if not before.endswith("\n") else before
        if before.rstrip().endswith((".", "!", "?", "]")) and after.lstrip(" ,;").startswith("[["):
            after = " " + after.lstrip(" ,;\t")
        sentence = before + after
    return sentence
