"""Headings: the chain a record stands under, and what a heading of ours says for all its items."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ua_memory.markdown.lines import readable
from ua_memory.records import ORIGINS, Heading, Origin

_SEPARATOR = " · "
_TIME = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")


def heading_line(time: str, client: str, session: str | None, origin: Origin | None) -> str:
    """A heading of ours: `## 14:32 · claude-code · session 8f2c · tool`.

    A client whose name would be read as something else gets the word `client` before it.
    """
    if client in ORIGINS or client.startswith("session "):
        client = f"client {client}"
    parts = [time, client, f"session {session}" if session else "", origin or ""]
    return "## " + _SEPARATOR.join(" ".join(readable(p).replace("·", "-").split()) for p in parts if p)


def tags_line(tags: Sequence[str]) -> str:
    """The comment below a heading that says what holds for all its items: `<!-- tags: ["cwd:/a b"] -->`."""
    listed = json.dumps([readable(tag) for tag in tags], ensure_ascii=False)
    return f"<!-- tags: {listed.replace('>', chr(92) + 'u003e')} -->"


def heading_tags(listed: str) -> tuple[str, ...]:
    """The tags that such a comment lists; none where it is no list of texts, as a person's comment may be."""
    try:
        found = json.loads(listed)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
        return ()
    return tuple(tag.strip() for tag in found if tag.strip())


def heading_of(above: Sequence[tuple[int, str, Heading]], text: str, base: Heading) -> Heading:
    """The heading with this text, below those in `above` (level, text, heading, outermost first): what
    it does not say itself is as the one above it says. `base` is what the file says for all of them."""
    trail = (*base.trail, *(words for _, words, _ in above), text)
    own = _ours(text) or older(text)
    if own and base.whole:
        own = replace(own, origin=base.origin, whole=True)
    return replace(own or (above[-1][2] if above else base), trail=trail)


def _ours(text: str) -> Heading | None:
    time, *parts = text.split(_SEPARATOR)
    if not _TIME.fullmatch(time):
        return None
    client, session, origin = None, None, None
    for part in map(str.strip, parts):
        if part in ORIGINS and not origin:
            origin = part
        elif part.startswith("session ") and not session:
            session = part[len("session ") :].strip()
        elif not client:
            client = part
    return Heading((), time, client, session, origin)


def older(text: str) -> Heading | None:
    """`2026-02-20T14:03:11+00:00 — <source>`, as an older generation wrote it; None for all others."""
    stamp, dash, source = text.partition(" — ")
    if not dash or stamp[10:11] != "T":
        return None
    try:
        datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return Heading((), stamp[11:16], source.strip() or None)


def stamp_day(text: str) -> str:
    """The day of an older heading."""
    return text[:10]
