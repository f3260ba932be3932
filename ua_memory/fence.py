"""How recalled memory stands in a prompt: between two marks, one line each, as data.

`transcripts` leaves out what stands between the marks, so that nothing recalled is learnt again as if it
were new. A block is the same to the byte for the same lines: a prompt cache can keep it. Read by every hook:
nothing is imported that costs.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RECALL_OPEN = "<ua-memory-recall"
"""How a block of recalled memory begins; attributes and `>` follow."""
RECALL_CLOSE = "</ua-memory-recall>"

MOST = 9500
"""Characters of a block, marks and all. Claude Code puts a hook's output of more than 10,000 into a file and
shows its beginning only; Codex cuts at 2,500 tokens."""

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""What is not seen, and ends a line, turns it around, smuggles letters (the last) or is no text."""
_TURNED = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_WIDTHLESS = "\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff"
_TAG = re.compile(rf"[<\uff1c\ufe64](?P<name>[\s/|{_WIDTHLESS}]*[\w:{_WIDTHLESS}-]+)")
_BARE = re.compile(rf"[\s/|{_WIDTHLESS}]+")
_ALIKE = str.maketrans("асԁеһіјӏорԛѕуѵхтмκνορτυіь", "acdehijlopqsyvxtmkvoptuib")
"""Letters of other scripts that look like Latin ones."""
FRAMES = (
    "ua-memory", "system", "im_start", "im_end", "function_calls", "function_results", "tool_use",
    "tool_result", "antml:",
)  # fmt: skip
"""How the marks begin that clients and models give a meaning, besides those around a text of ours."""


def defanged(text: str, *names: str) -> str:
    """A text as it stands between marks of these names in a prompt: nothing in it can end them, open others
    or pass for a client's own, nor in letters that only look so. What it says is left to be read."""
    begins = (*(name.casefold() for name in names), *FRAMES)

    def broken(mark: re.Match[str]) -> str:
        name = _BARE.sub("", mark["name"]).casefold()
        if not name.isascii():
            from unicodedata import normalize

            name = normalize("NFKC", name).casefold().translate(_ALIKE)
        return "‹" + mark["name"] if name.startswith(begins) else mark[0]

    return _TAG.sub(broken, _TURNED.sub("", text))


def harmless(text: str) -> str:
    """The text without what is not seen, and with no mark in it that could end the block or open one."""
    return defanged(_HIDDEN.sub(" ", text))


def fenced(kind: str, body: str) -> str:
    """A text of our own making as a block of recalled memory; `kind` is one word."""
    return f'{RECALL_OPEN} kind="{kind}">\n{harmless(body)}\n{RECALL_CLOSE}'


def row(date: str, text: str, source: str) -> str:
    """One line of a block: when, what, and where it stands."""
    flat = " ".join(harmless(text).split())
    return f"- {date or 'undated'}: {flat} [{' '.join(harmless(source).split())}]"


def block(
    kind: str, head: str, parts: Iterable[str], gap: str = "\n", most: int = MOST
) -> tuple[str, Sequence[str]]:
    """(the block with as many of the parts, in their order, as fit whole; those that do not).

    The block is empty where no part fits.
    """
    kept: list[str] = []
    left: list[str] = []
    size = len(fenced(kind, head))
    for part in map(harmless, parts):
        if size + len(gap) + len(part) <= most:
            kept.append(part)
            size += len(gap) + len(part)
        else:
            left.append(part)
    return (fenced(kind, gap.join([head, *kept])) if kept else ""), left
