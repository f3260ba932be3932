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

FINEST = 127 << 7
"""The largest number of a query as a whole one."""


def pack(states: Rows) -> bytes:
    """The signs of (t, d) states, d a multiple of 8, token by token."""
    import numpy as np

    return np.packbits(states > 0, axis=1).tobytes() if len(states) else b""


def best(query: Rows, texts: Sequence[bytes]) -> Rows:
    """(q, n): for each of q query rows of length 1 and each of n packed texts, the best match with any of
    the text's tokens, 0 to about 0.8; 0 for a text without tokens."""
    import numpy as np

    from ua_memory.index.runtime import product

    size = query.shape[1] // 8
    found = np.zeros((len(query), len(texts)), dtype=np.float32)
    there = [number for number, codes in enumerate(texts) if codes]
    if not there or not len(query):
        return found
    packed = np.frombuffer(b"".join(texts[number] for number in there), dtype=np.uint8).reshape(-1, size)
    # Whole numbers do for the query too: fourteen bits of each, taken in two halves.
    scale = np.maximum(np.abs(query).max(axis=1, keepdims=True), 1e-12) / FINEST
    whole = np.round(query / scale).astype(np.int32)
    upper = (whole + 64) >> 7
    halves = np.concatenate([upper, whole - (upper << 7)]).astype(np.int8)
    both = product()(np.unpackbits(packed, axis=1), np.ascontiguousarray(halves.T))
    match = (both[:, : len(query)] << 7) + both[:, len(query) :]
    starts = np.cumsum([0, *(len(texts[number]) // size for number in there[:-1])])
    # A sign is 2 bit - 1, so its product is that of the bits, doubled, less the query's own sum.
    most = 2 * np.maximum.reduceat(match, starts, axis=0) - whole.sum(axis=1)
    found[:, there] = most.T * (scale / math.sqrt(query.shape[1]))
    return np.maximum(found, 0)
