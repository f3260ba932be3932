"""A cross-encoder of the owner's: a model that reads a query and a text together and says how well they fit.

It reads each pair anew, milliseconds for each, so it looks only at the best that the other stages found
(Nogueira and Cho 2019, arXiv 1901.04085). None is bundled: UA_MEMORY_CROSS_ENCODER names a folder with
`model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as sentence-transformers exports them. Only the
owner's environment can: the settings of a cloned repository must not choose what this machine loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float32]

MODELS = ("model.onnx", "onnx/model.onnx")
TOKENIZER = "tokenizer.json"
LONGEST = 512
"""Tokens of a pair; of a longer one the text is cut."""
TOGETHER = 16
"""Pairs of one call of the model."""


class CrossUnavailable(Exception):
    """The cross-encoder does not load or does not fit; the message says why. The order stays as it was."""


class CrossEncoder:
    """The model of one folder, loaded at the first pair."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._session: Any = None
        self._tokenizer: Any = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, 0 to 1. Raises CrossUnavailable."""
        self._load()
        try:
            pairs = self._tokenizer.encode_batch([(query, text) for text in texts])
            parts = [pairs[start : start + TOGETHER] for start in range(0, len(pairs), TOGETHER)]
            return [score for part in parts for score in self._read(part)]
        except CrossUnavailable:
            raise
        except Exception as error:  # neither library has a base class for what it raises
            raise CrossUnavailable(f"the cross-encoder in {self.folder} failed: {error}") from error

    def _read(self, pairs: Sequence[Any]) -> list[float]:
        import numpy as np

        columns = {
            "input_ids": [pair.ids for pair in pairs],
            "attention_mask": [pair.attention_mask for pair in pairs],
            "token_type_ids": [pair.type_ids for pair in pairs],
        }
        wanted = [one.name for one in self._session.get_inputs()]
        if strange := sorted(set(wanted) - set(columns)):
            raise CrossUnavailable(f"{self.folder} is no cross-encoder: it wants {', '.join(strange)}")
        given = {name: np.array(columns[name], dtype=np.int64) for name in wanted}
        found = np.asarray(self._session.run(None, given)[0], dtype=np.float32)
        if found.ndim != 2 or len(found) != len(pairs) or found.shape[1] not in (1, 2):
            shape = " × ".join(map(str, found.shape))
            raise CrossUnavailable(f"{self.folder} is no cross-encoder: {len(pairs)} pairs gave {shape}")
        return [float(score) for score in _placed(found)]

    def _load(self) -> None:
        if self._session is not None:
            return
        model = next((self.folder / name for name in MODELS if (self.folder / name).is_file()), None)
        if model is None or not (self.folder / TOKENIZER).is_file():
            raise CrossUnavailable(f"{self.folder} holds no {MODELS[0]} and {TOKENIZER}")
        try:
            import tokenizers

            from ua_memory.index.runtime import cores, session

            tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / TOKENIZER))
            tokenizer.enable_truncation(LONGEST, strategy="only_second")
            tokenizer.enable_padding()
            self._session = session(str(model), cores())
        except Exception as error:  # as above
            raise CrossUnavailable(f"the cross-encoder in {self.folder} does not load: {error}") from error
        self._tokenizer = tokenizer


def _placed(found: Numbers) -> Numbers:
    """(n,) in 0 to 1 of (n, 1) logits, or of (n, 2), where the second is the class that fits."""
    import numpy as np

    logit = found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]
    placed: Numbers = (1 / (1 + np.exp(-np.clip(logit, -60, 60)))).astype(np.float32)
    return placed
