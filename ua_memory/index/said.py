"""A query as a model reads it, in a thread beside what else a search has to do.

The model takes a third of a search and needs no Python meanwhile: on two cores what looks for words is
done in that time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors32 = NDArray[np.float32]

T = TypeVar("T")
Spans: TypeAlias = tuple[tuple[int, int], ...]


class Said:
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
