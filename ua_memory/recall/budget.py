"""How much recall looks at and how much it prints: the presets, and a block that never passes its tokens.

    low    30 candidates of each arm,    600 tokens
    mid    60 candidates of each arm,  2,000 tokens
    high  200 candidates of each arm,  6,000 tokens

Greedy, in the order of the hits: each line that still fits whole is taken. Counted is all that is printed:
marks, head, dates, places and line ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ua_memory import fence, tokens
from ua_memory.errors import Usage

LEAST = 12
"""Tokens of the shortest line there is: its mark, a date and a place."""


@dataclass(frozen=True, slots=True)
class Preset:
    """Candidates asked of each arm, and the most tokens of a block."""

    depth: int
    tokens: int

    @property
    def lines(self) -> int:
        """More lines than these have no room."""
        return self.tokens // LEAST + 1


PRESETS: Mapping[str, Preset] = {
    "low": Preset(30, 600),
    "mid": Preset(60, 2000),
    "high": Preset(200, 6000),
}
"""What `--budget` names: a second thought for a prompt, what an answer needs, all there is on a matter."""
DEFAULT = PRESETS["mid"]


def preset(name: str = "", most: int = 0) -> Preset:
    """The preset of a name, with other tokens if `most` says so. Usage for no such name."""
    if name and name not in PRESETS:
        raise Usage(f"no such budget: {name}", mend=f"one of {', '.join(PRESETS)}")
    chosen = PRESETS[name] if name else DEFAULT
    return Preset(chosen.depth, most or chosen.tokens)


def block(kind: str, head: str, lines: Iterable[str], most: int) -> tuple[str, list[str]]:
    """(the block with as many of the lines, in their order, as fit into `most` tokens; those that do not).

    The block is empty where no line fits. Its tokens are those of `tokens.count`, with the line end after it.
    """
    kept: list[str] = []
    left: list[str] = []
    # A line end parts tokens, so lines are counted one by one.
    size = tokens.count(fence.fenced(kind, head) + "\n")
    for line in map(fence.harmless, lines):
        more = tokens.count(line + "\n")
        if size + more <= most:
            kept.append(line)
            size += more
        else:
            left.append(line)
    text = fence.fenced(kind, "\n".join([head, *kept]))
    while (
        kept and tokens.count(text + "\n") > most
    ):  # a long text is counted in pieces: a cut may add a token
        left.insert(0, kept.pop())
        text = fence.fenced(kind, "\n".join([head, *kept]))
    return (text if kept else ""), left
