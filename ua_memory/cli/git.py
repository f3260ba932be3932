"""`ua-memory git …`: git itself, on the bank's history."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.memory import Memory

git_app = verbs.new()

DELETES_OTHERS = ("clean",)
"""What would remove files that are not the bank's where the bank lies inside somebody's repository."""

OWN = ("GIT_TERMINAL_PROMPT", "GIT_LITERAL_PATHSPECS", "GIT_ALLOW_PROTOCOL", "GIT_NO_LAZY_FETCH")
"""What our own git is not allowed, and a person's is: to ask, to match, to reach a remote."""


@git_app.command(
    cls=verbs.Verb,
    context_settings={
        "ignore_unknown_options": True,
        "allow_extra_args": True,
        "allow_interspersed_args": False,
    },
)
def git(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGS...",
            help="git's own arguments: log --stat, show HEAD, remote add, …",
            show_default=False,
        ),
    ] = None,
    bank: verbs.Bank = None,
) -> None:
    """Run git on the bank's history.

    Where the bank is a repository of its own, plain git does the same. Inside somebody's repository the
    history lies apart, and this is the way to it.
    """
    import subprocess

    from ua_memory.errors import GitFailed, Usage

    with context.opened(ctx) as (call, memory):
        if not memory.store.history.exists:
            raise GitFailed(
                "there is no history yet", where=str(memory.store.bank.git_dir), mend="ua-memory init"
            )
        own = memory.store.bank.own
        if not own and words and words[0] in DELETES_OTHERS:
            raise Usage(
                f"git {words[0]} would delete files that are not the bank's", mend="delete them by hand"
            )
        env = _environment(memory, dict(call.env))
        call.stdout.flush()
        try:
            if not own:
                # The trail is written without an index; git's own commands compare with one.
                subprocess.run(["git", "read-tree", "HEAD"], cwd=memory.store.bank.root, env=env, check=False)
            done = subprocess.run(
                ["git", *(words or ["help"])], cwd=memory.store.bank.root, env=env, check=False
            )
        except FileNotFoundError as error:
            raise GitFailed("git is not installed", mend="install git") from error
        except ValueError as error:  # NUL, or half a character: from a socket, not from a shell
            raise Usage(f"no argument for git: {error}", mend="ua-memory git log") from error
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


def _environment(memory: Memory, env: dict[str, str]) -> dict[str, str]:
    """The caller's variables, pinned to the trail. Unlike our own git this one may ask for a password."""
    pinned = memory.store.history.environment()
    for name in OWN:
        pinned.pop(name, None)
    if not memory.store.bank.own:
        number = int(pinned["GIT_CONFIG_COUNT"])
        # Everything around the bank is somebody's work, not files that were forgotten.
        pinned |= {
            f"GIT_CONFIG_KEY_{number}": "status.showUntrackedFiles",
            f"GIT_CONFIG_VALUE_{number}": "no",
        }
        pinned["GIT_CONFIG_COUNT"] = str(number + 1)
    pinned = {
        name: value
        for name, value in pinned.items()
        if value or name not in ("GIT_CONFIG_PARAMETERS", "GIT_NAMESPACE")
    }
    env = {name: value for name, value in env.items() if not name.startswith("GIT_DIR")}
    return {**env, **pinned, "PWD": os.fspath(memory.store.bank.root)}
