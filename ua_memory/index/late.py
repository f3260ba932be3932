"""A text's tokens, kept for late interaction: one bit a number, 48 bytes a token.

Each query token is held against each token of a text, and its best match counts (ColBERT, Khattab and
Zaharia 2020, arXiv 2004.12832), here with the states of a model that was not trained for it. Of the stored
side the signs suffice: on the development conversations R@10 is 84.3 with all bits and 84.6 with one. Marks,
signs of the model and tokens without a letter or digit are left out; 30 tokens a turn stay, 1.4 KB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float32]

AT_ONCE = 256
"""Tokens held against a query in one go: their numbers stay in the processor's own memory (400 KB)."""


def pack(states: Rows) -> bytes:
    """The signs of (t, d) states, d a multiple of 8, token by token."""
    import numpy as np

    return np.packbits(states > 0, axis=1).tobytes() if len(states) else b""


def best(query: Rows, texts: Sequence[bytes]) -> Rows:
    """(q, n): for each of q query rows of length 1 and each of n packed texts, the best match with any of
    the text's tokens, 0 to about 0.8; 0 for a text without tokens."""
    import numpy as np

    size = query.shape[1] // 8
    found = np.zeros((len(query), len(texts)), dtype=np.float32)
    there = [number for number, codes in enumerate(texts) if codes]
    if not there or not len(query):
        return found
    packed = np.frombuffer(b"".join(texts[number] for number in there), dtype=np.uint8).reshape(-1, size)
    # A sign is 2 bit - 1, so its product is that of the bits, doubled, less the query's own sum.
    scaled = query / math.sqrt(query.shape[1])
    doubled = np.ascontiguousarray((2 * scaled).T)
    match = np.empty((len(packed), len(query)), dtype=np.float32)
    bits = np.empty((min(AT_ONCE, len(packed)), query.shape[1]), dtype=np.float32)
    for start in range(0, len(packed), AT_ONCE):
        part = packed[start : start + AT_ONCE]
        bits[: len(part)] = np.unpackbits(part, axis=1)
        np.matmul(bits[: len(part)], doubled, out=match[start : start + len(part)])
    starts = np.cumsum([0, *(len(texts[number]) // size for number in there[:-1])])
    found[:, there] = (np.maximum.reduceat(match, starts, axis=0) - scaled.sum(axis=1)).T
    return np.maximum(found, 0)
