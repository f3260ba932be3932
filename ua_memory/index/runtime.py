"""Sessions of onnxruntime as a small machine wants them; import this where a model is loaded, not before."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

# Read as it loads: else it keeps a device id and a database under the home directory to report home with.
# A command has set it before; a program that uses `Memory` has not.
os.putenv("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """A model that is ready to run, and its tokenizer. Several threads may use them at once."""

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
    """How many this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


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
