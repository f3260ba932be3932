"""What of a conversation is let wait, as the bank's settings have it: whose turns, which tools, which words.

Before that, readers leave out what nobody said: recalled memory, machines' turns, our own tools (`spoken`,
`transcripts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from ua_memory.config import Config
from ua_memory.transcripts.turns import Turn


def sieved(turns: Iterable[Turn], config: Config) -> Iterator[Turn]:
    """The turns that `retainContent` and `toolFilter` let pass, without what `strip` matches; one of which
    nothing is left is left out."""
    for turn in turns:
        if turn.role not in config.retain_content:
            continue
        if turn.role == "tool":
            name = turn.text.partition(" ")[0].rstrip(":")
            if not any(fnmatchcase(name, pattern) for pattern in config.tool_filter):
                yield turn
            continue
        text = turn.text
        for pattern in config.strip:
            text = re.sub(pattern, "", text)
        if text is turn.text:
            yield turn
        elif text.strip():
            yield replace(turn, text=text.strip())
