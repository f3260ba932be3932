"""Answers that were paid for and are not in the truth yet: one line each in `pending/`, fsynced.

A run that is killed leaves them, and the next one takes them up before it asks anything; facts that changed
since are asked about anew. After the commit the file goes, but for what waits for a person's word.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ua_memory.errors import CannotWrite
from ua_memory.paths import make_private
from ua_memory.reflect.proposals import Operation
from ua_memory.store import swap

FILE = "consolidation.jsonl"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one batch: the marks of its facts, what is to be done, what was refused. `aside` is why
    its one fact is set aside, '' if it is not; `held` that it waits for a person's word."""

    facts: tuple[str, ...]
    operations: tuple[Operation, ...] = ()
    refused: tuple[str, ...] = ()
    aside: str = ""
    by: str = ""
    held: bool = False

    @property
    def rests_on(self) -> set[str]:
        """The marks of the facts that it is about, and of those that prove it."""
        return {*self.facts, *(mark for each in self.operations for mark, _ in each.proofs)}


class Answers:
    """The file of a bank. One process at a time has it: who holds the claim of the run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def all(self) -> list[Answer]:
        """The answers there are; a line that a kill left half written is passed over."""
        try:
            lines = self.file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return [answer for line in lines if (answer := _read(line))]

    def add(self, answer: Answer) -> None:
        """Keep an answer; it is on the disk when this returns. CannotWrite."""
        try:
            make_private(self.file.parent)
            new = not self.file.exists()
            fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                # A half line of a killed process ends here, and is passed over when it is read.
                os.write(fd, (b"" if new else b"\n") + _line(answer))
                os.fsync(fd)
            finally:
                os.close(fd)
            if new:
                swap.sync_folder(self.file.parent)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(self.file)) from error

    def keep_only(self, answers: Iterable[Answer]) -> None:
        """Let go of all but these. CannotWrite."""
        rest = list(answers)
        try:
            if not rest:
                self.file.unlink(missing_ok=True)
            elif rest != self.all():
                fresh = self.file.with_suffix(".rest")
                fresh.unlink(missing_ok=True)
                swap.write(fresh, b"".join(map(_line, rest)), mode=0o600)
                fresh.replace(self.file)
                swap.sync_folder(self.file.parent)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(self.file)) from error


def _line(answer: Answer) -> bytes:
    row: dict[str, Any] = {
        "facts": answer.facts, "operations": [each.plain() for each in answer.operations],
        "refused": answer.refused, "aside": answer.aside, "by": answer.by, "held": answer.held,
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _read(line: bytes) -> Answer | None:
    try:
        row: Mapping[str, Any] = json.loads(line)
        operations = tuple(Operation.of(each) for each in row["operations"])
        facts, refused = tuple(map(str, row["facts"])), tuple(map(str, row["refused"]))
        return Answer(facts, operations, refused, str(row["aside"]), str(row["by"]), bool(row["held"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
