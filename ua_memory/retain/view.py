"""What a flush's sub-agent is shown of memory.

It stands apart from the sub-agent, which loads all that speaks with a model: a hook that only lets turns wait
has no use for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ua_memory.records import CoreBlock


@dataclass(frozen=True, slots=True)
class View:
    """What the sub-agent may see of memory: hits for a query, one line each, and the core blocks.

    `clean` takes secrets out of a text: what people wrote into their files may hold some. `check` raises what
    core memory would raise if these blocks had these values.
    """

    search: Callable[[str], Sequence[str]]
    core: Callable[[], Sequence[CoreBlock]]
    clean: Callable[[str], str] = str
    check: Callable[[Mapping[str, str]], None] = lambda _: None
