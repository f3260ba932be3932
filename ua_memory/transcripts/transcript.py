"""A transcript that lies somewhere and was not opened yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import IO


@dataclass(frozen=True, slots=True)
class Transcript:
    """`where` it lies, in a person's words; `client` names its reader, None to tell by its content; `changed`
    is when it was last written to, `opened` gives its bytes. `machine` says what speaks in it, where no
    person does and that is known without reading it."""

    where: str
    client: str | None
    changed: datetime
    opened: Callable[[], AbstractContextManager[IO[bytes]]]
    machine: str = ""
