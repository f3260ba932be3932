"""One thread at a time in the methods of an object that several threads share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class Shared(Protocol):
    """What has a lock that its methods hold; who needs several calls to be one holds it, too."""

    turn: RLock


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Shared)


def in_turn(work: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The same method, for one thread at a time."""

    @wraps(work)
    def done(shared: S, /, *args: P.args, **named: P.kwargs) -> R:
        with shared.turn:
            return work(shared, *args, **named)

    return done
