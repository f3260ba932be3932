"""The one boundary: every way a call can fail becomes a message on standard error and an exit code."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from ua_memory.errors import OutOfMemory, UaMemoryError

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

INTERRUPTED = 130
PIPE_CLOSED = 141


def guarded(call: Call, work: Callable[[], int]) -> int:
    """Run `work` and return its exit code, or that of what it raised, told to the caller."""
    try:
        code = work()
        call.stdout.flush()
        return code
    except BrokenPipeError:
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except UaMemoryError as error:
        return _tell(call, type(error).__name__, error.what, error.exit_code, error.where, error.mend)
    except MemoryError:
        mend = "raise the limit (ulimit -v), or end other programs"
        return _tell(call, "OutOfMemory", "there is too little memory", OutOfMemory.exit_code, None, mend)
    except OSError as error:
        return _system(call, error)
    except Exception as error:
        return _usage(call, error) if _is_usage(error) else _bug(call, error)


def _tell(
    call: Call, kind: str, what: str, code: int, where: str | None = None, mend: str | None = None
) -> int:
    """Print the message for a person, or with `--json` the object for a script."""
    from ua_memory.cli.format import dumps, visible

    if call.as_json:
        told = {"type": kind, "message": what, "where": where, "mend": mend, "exit_code": code}
        text = dumps({"error": told}, call.stderr)
    else:
        text = visible(f"ua-memory: error: {f'{where}: ' if where else ''}{what}")
        text += f"\n  mend: {visible(mend)}" if mend else ""
    # Nobody may listen any more, or only to one of them; the exit code still tells.
    with contextlib.suppress(OSError):
        call.stdout.flush()
    with contextlib.suppress(OSError):
        call.stderr.write(text + "\n")
        call.stderr.flush()
    return code


def _is_usage(error: Exception) -> bool:
    """Whether typer itself refused the arguments. Its base class has changed its module more than once."""
    import typer

    return isinstance(error, typer.BadParameter.__mro__[2])


def _usage(call: Call, error: Exception) -> int:
    what = str(getattr(error, "format_message", lambda: error)()).rstrip(".")
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "ua-memory"
    if type(error).__name__ == "NoArgsIsHelpError" and ctx is not None:
        call.stdout.write(ctx.get_help() + "\n")
        return 2
    mend = f"{path} --help"
    if what.startswith("No such option") and path.endswith((" insert", " search")):
        mend = f"{path} -- TEXT, if the text itself begins with a dash; else {mend}"
    what = what[:1].lower() + what[1:] if what[1:2].islower() else what
    return _tell(call, "Usage", " ".join(what.split()), 2, None, mend)


def _system(call: Call, error: OSError) -> int:
    """What the file system refused outside the store, which words its own refusals."""
    from ua_memory.errors import CannotWrite

    if call.debug:
        traceback.print_exc(file=call.stderr)
    what = error.strerror or str(error) or type(error).__name__
    where = str(error.filename) if error.filename else None
    return _tell(
        call,
        "CannotWrite",
        what,
        CannotWrite.exit_code,
        where,
        "check owner, mode and free space; UA_MEMORY_DEBUG=1 tells more",
    )


def _bug(call: Call, error: Exception) -> int:
    if call.debug:
        traceback.print_exc(file=call.stderr)
    first = (str(error).splitlines() or [""])[0][:300]
    what = f"a bug in ua-memory: {type(error).__name__}{f': {first}' if first else ''}"
    mend = "run it again with UA_MEMORY_DEBUG=1 and report what it prints"
    return _tell(call, "Bug", what, 1, None, mend)


__all__ = ["INTERRUPTED", "PIPE_CLOSED", "guarded"]
