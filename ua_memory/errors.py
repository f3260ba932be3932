"""Every way a command can fail on purpose: one class and one exit code per cause.

A message says what went wrong, where, and the command that mends it. The one place that prints
these is `views.output`; anything else that reaches it is a bug and exits 1.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from types import FunctionType

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")


class UaMemoryError(Exception):
    """The base of all of them. `where` is a file, id or revision; `hint` a command or an action."""

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what, self.where, self.hint = what, where, hint
        super().__init__(f"{where}: {what}" if where else what)


class Usage(UaMemoryError):
    """The words of the call are off: an empty text, an unknown kind, a date that is none."""

    exit_code = 2


def at_least(least: int, **given: int | None) -> None:
    """Usage for an argument that is given and smaller; it would find nothing, and nobody would know why."""
    for name, value in given.items():
        if value is not None and value < least:
            raise Usage(f"{name} must be at least {least}, not {value}")


PLAIN = {
    "str": "a string", "int": "an integer", "float": "a number", "bool": "true or false", "None": "None",
    "datetime": "a datetime", "date": "a date", "Path": "a path", "Filters": "what Memory.filters() returns",
    "Sequence[str]": "a list of strings",
}  # fmt: skip
"""Types of arguments that `checked` compares, by their annotations."""


def checked(cls: type[T]) -> type[T]:
    """A class whose public methods refuse an argument of another plain type than they declare with Usage."""
    for name, method in list(vars(cls).items()):
        plain = getattr(method, "__func__", method)
        if isinstance(plain, FunctionType) and (name == "__init__" or not name.startswith("_")):
            wrapped = _checked(plain)
            setattr(cls, name, wrapped if plain is method else type(method)(wrapped))
    return cls


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    types = {name: kinds for name, said in method.__annotations__.items()
             if (kinds := said.split(" | ")) and PLAIN.keys() >= {*kinds}}  # fmt: skip
    code = getattr(method, "__wrapped__", method).__code__
    names = code.co_varnames[: code.co_argcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & 4 else ""

    @wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        positional = (*names, *[rest] * (len(args) - len(names)))
        args = tuple(
            _listed(value, types.get(name, ())) for name, value in zip(positional, args, strict=False)
        )
        given = {name: _listed(value, types.get(name, ())) for name, value in given.items()}
        for name, value in (*zip(positional, args, strict=False), *given.items()):
            if name in types and not any(_fits(value, kind) for kind in types[name]):
                wanted = " or ".join(PLAIN[kind] for kind in types[name])
                raise Usage(f"{name} must be {wanted}, not {value!r:.80}", hint=_hint(value, types[name]))
        return method(*args, **given)

    return call


def _listed(value: object, kinds: Collection[str]) -> object:
    """An iterator's values for a sequence, else the value itself."""
    return tuple(value) if "Sequence[str]" in kinds and isinstance(value, Iterator) else value


def _hint(value: object, kinds: Collection[str]) -> str | None:
    if isinstance(value, str) and "Sequence[str]" in kinds:
        return f"pass [{value!r:.80}]"
    messages = isinstance(value, list) and any(isinstance(each, dict) for each in value)
    return "messages are for memory.flush(messages)" if messages else None


def _fits(value: object, kind: str) -> bool:
    if kind == "Sequence[str]":
        if isinstance(value, str) or not isinstance(value, Collection):
            return False
        return all(isinstance(each, str) for each in value)
    if kind in ("int", "float"):  # also those of numpy, and decimals
        number = hasattr(value, "__index__" if kind == "int" else "__float__")
        return number and not isinstance(value, bool) and str(value).casefold() != "nan"
    if kind == "Path":
        return isinstance(value, os.PathLike)
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(value).__mro__}
    ours = any((module, kind) in names for module in ("builtins", "datetime", "ua_memory"))
    return ours or (kind, value) == ("None", None)


def one_line(text: str, most: int, what: str, example: str) -> str:
    """A text on one line. Usage if it is empty, or longer than `what` may be."""
    line = " ".join(text.split())
    if not line:
        raise Usage("no text given", hint=example)
    if len(line) > most:
        raise Usage(f"{len(line)} characters; {what} has at most {most}", hint="shorten it")
    return line


class NoBank(UaMemoryError):
    """No bank was found, or the folder named is none."""

    exit_code = 3


class NotFound(UaMemoryError):
    """No such fact, block, file, line or revision."""

    exit_code = 4


class Busy(UaMemoryError):
    """Another process holds the bank's lock for longer than we wait."""

    exit_code = 5


class ChangedOnDisk(UaMemoryError):
    """The file is not what the caller read: read again, then decide."""

    exit_code = 6


class Conflict(UaMemoryError):
    """A merge or an undo meets a later change of the same lines. Nothing was written."""

    exit_code = 7


class Held(UaMemoryError):
    """Facts disappeared all at once and their owner has not said whether that was meant."""

    exit_code = 8


class Malformed(UaMemoryError):
    """A file or setting of the bank cannot be read as what it should be; it was left as it is."""

    exit_code = 9


class CannotWrite(UaMemoryError):
    """The file system refuses: read-only, full, no permission, too many open files."""

    exit_code = 10


class writing:
    """Turns an OSError in the block into CannotWrite."""

    def __init__(self, where: object, hint: str | None = "check owner, mode and free space") -> None:
        self.where, self.hint = where, hint

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            where, what = str(self.where), error.strerror or str(error)
            raise CannotWrite(what, where=where, hint=mending(error, where) or self.hint) from error


def mending(error: OSError, path: str) -> str:
    """What mends an error of the file system, '' if its number does not say."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files: ulimit -n 1024"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free disk space there: df -h, quota"
    if error.errno == errno.EROFS:
        return "it is mounted read-only: mount it writable, or name another folder"
    return _belongs_to_another(path) if isinstance(error, PermissionError) else ""


def _belongs_to_another(path: str) -> str:
    """The hint for a file or folder of another user of the machine, '' if it is ours."""
    while path and not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120
    if not path or not hasattr(os, "geteuid") or os.lstat(path).st_uid in (0, os.geteuid()):
        return ""
    return "another user owns it; to share a bank, each has a copy: ua-memory init FOLDER --from ADDRESS"


class GitFailed(UaMemoryError):
    """git is missing, too old, or refused. What was being written waits in `pending/`."""

    exit_code = 11


class ProblemsFound(UaMemoryError):
    """A check did its work and found something: `verify`, `doctor`, `scan`."""

    exit_code = 12


class TooLarge(UaMemoryError):
    """Over a documented limit; nothing was cut, nothing was written."""

    exit_code = 13


class ModelUnavailable(UaMemoryError):
    """No model answered: no network, a time-out, overload or a cut answer, also after retries."""

    exit_code = 14


class KeyRejected(UaMemoryError):
    """The model's endpoint does not accept the key, or the account behind it may not do this."""

    exit_code = 15


class RequestRejected(UaMemoryError):
    """The model's endpoint does not accept the request: an unknown model, a prompt that is too long."""

    exit_code = 16


class ModelRefused(UaMemoryError):
    """The model read the request and declined to answer it."""

    exit_code = 17


class ModelMisbehaved(UaMemoryError):
    """The model's answers were no use: calls that are none, no end, cut off. Nothing of them was kept."""

    exit_code = 18


class BudgetSpent(UaMemoryError):
    """A limit of tokens or money, of this run or of the day, would be passed. The call was not made."""

    exit_code = 19


class StillThere(UaMemoryError):
    """Something was forgotten, and the search that proves it found its words: where, is said."""

    exit_code = 20


class OutOfMemory(UaMemoryError):
    """The system gives no more memory, or a limit (`ulimit -v`, a container's) allows no more."""

    exit_code = 21


EXIT_CODES: dict[int, type[UaMemoryError]] = {cls.exit_code: cls for cls in UaMemoryError.__subclasses__()}
