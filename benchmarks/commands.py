"""Whole processes against the floor: `--help` against an idle interpreter, `insert` against a shell script.

Needs an installation that is not editable, since that is what users have; `make bench` makes one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, console_script, main, paired, process

SCRIPT = """\
#!/bin/sh
echo "- a line that somebody says, number $1" >> memory/2026-11-21.md
git add memory/2026-11-21.md
git commit -q -m "add a line"
"""


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[RUNS]: how many pairs, 15 unless told."""
    runs = int(args[0]) if args else 15
    script, python = console_script()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        env = {
            **os.environ,
            "HOME": folder,
            "GIT_AUTHOR_NAME": "b",
            "GIT_AUTHOR_EMAIL": "b@b",
            "GIT_COMMITTER_NAME": "b",
            "GIT_COMMITTER_EMAIL": "b@b",
        }
        bank, plain = home / "bank", home / "plain"
        yield paired(
            "ua-memory --help / python -c pass",
            process(script, "--help", env=env),
            process(python, "-c", "pass", env=env),
            bar=8,
            runs=runs,
        )
        process(script, "init", str(bank), env=env)()
        (plain / "memory").mkdir(parents=True)
        process("git", "init", "-q", env=env, cwd=plain)()
        (plain / "add.sh").write_text(SCRIPT)
        number = iter(range(10**6))

        def insert() -> None:
            process(
                script,
                "--bank",
                str(bank),
                "insert",
                f"a line that somebody says, number {next(number)}",
                env={**env, "UA_MEMORY_DAEMON": "off"},
            )()

        def append() -> None:
            process("sh", "add.sh", str(next(number)), env=env, cwd=plain)()

        yield paired("insert, no daemon / shell script with git", insert, append, bar=30, runs=runs)


if __name__ == "__main__":
    main(measure)
