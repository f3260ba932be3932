"""Which bank a call is about, and the open `Memory` of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import NoBank

if TYPE_CHECKING:
    from typer import Context

    from ua_memory.cli.call import Call
    from ua_memory.config import Config
    from ua_memory.memory import Memory


def call_of(ctx: Context) -> Call:
    """The call that a verb was invoked by."""
    from ua_memory.cli.call import Call

    call = ctx.find_object(Call)
    assert call is not None, "a verb runs inside app.run"
    return call


@contextmanager
def opened(ctx: Context, *, lenient: bool = False) -> Iterator[tuple[Call, Memory]]:
    """The call, and its bank open for as long as the block lasts; `lenient` as `config.load` has it."""
    call = call_of(ctx)
    with bank_of(call, lenient=lenient) as memory:
        tell_untrusted(call, memory.config)
        yield call, memory


@contextmanager
def bank_of(call: Call, *, lenient: bool = False) -> Iterator[Memory]:
    """The bank of a call, open for as long as the block lasts."""
    root = bank_root(call)
    with call.opener(root, settings_of(call, root, lenient=lenient), call.now) as memory:
        yield memory


def settings_of(call: Call, root: Path, *, lenient: bool = False) -> Config:
    """The settings that count for a call in the bank at `root`. Malformed."""
    from ua_memory import config

    return config.load(root, environment(call), lenient=lenient)


def environment(call: Call) -> dict[str, str]:
    """The caller's variables as settings read them: with a home, and paths as the caller means them."""
    env = {**call.env, "HOME": call.env.get("HOME") or str(call.home)}
    if given := env.get("UA_MEMORY_CROSS_ENCODER"):
        env["UA_MEMORY_CROSS_ENCODER"] = str(absolute(call, given))
    return env


def tell_untrusted(call: Call, config: Config) -> None:
    """Say, once a command, which settings of the bank's file do not count; with `--json`, too."""
    if text := untrusted(config):
        call.stderr.write(f"ua-memory: {text}\n")


def untrusted(config: Config) -> str:
    """That settings of the bank's file do not count before their owner says so; '' where all do."""
    from ua_memory.config import sensitive
    from ua_memory.paths import SETTINGS

    names = sensitive()
    keys = ", ".join(names[name] for name in config.untrusted)
    return f"not trusted in {SETTINGS}, and ignored: {keys} (to review: ua-memory trust)" if keys else ""


def bank_here(call: Call) -> Path | None:
    """The folder of the bank that a call is about, None where there is none."""
    try:
        return bank_root(call)
    except NoBank:
        return None


def named(call: Call) -> Path | None:
    """The bank that `--bank` or `UA_MEMORY_BANK` names, whether there is one or not."""
    given = call.bank or call.env.get("UA_MEMORY_BANK")
    return absolute(call, given) if given else None


def absolute(call: Call, given: str) -> Path:
    """A path as the caller means it: from their folder, `~` being their home."""
    if given == "~" or given.startswith("~/"):
        return call.home / given[2:]
    return call.cwd / given


def found(call: Call) -> Path | None:
    """The nearest bank at or above the caller's folder."""
    from ua_memory import paths

    if not call.cwd.is_dir():
        raise NoBank(
            "the current folder is gone",
            where=str(call.cwd),
            mend="cd to a folder that exists, or name the bank with --bank",
        )
    return paths.discover(call.cwd, call.home)


def bank_root(call: Call) -> Path:
    """The folder of the bank that a call is about. NoBank tells how to make one."""
    from ua_memory import paths

    chosen = named(call)
    if chosen is not None:
        if not chosen.is_dir() or not paths.is_bank(chosen):
            by = "--bank" if call.bank else "UA_MEMORY_BANK"
            raise NoBank(
                f"{by} names no memory bank{_empty(chosen)}",
                where=str(chosen),
                mend=f"ua-memory init {_quoted(chosen)}",
            )
        return chosen
    nearest = found(call)
    if nearest is not None:
        return nearest
    default = paths.default_bank(call.home)
    if not default.is_dir() or not paths.is_bank(default):
        raise NoBank(
            f"no memory bank here or above{_empty(call.cwd)}, and none at {default}",
            where=str(call.cwd),
            mend=f"ua-memory init (makes {default}), or ua-memory init . (makes one here)",
        )
    return default


def _empty(folder: Path) -> str:
    from ua_memory import paths

    return f" ({paths.SETTINGS} here is empty)" if (folder / paths.SETTINGS).is_file() else ""


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
