"""What became of one text that was retained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ua_memory.llm import Model
from ua_memory.llm import Usage as Tokens
from ua_memory.records import Fact
from ua_memory.retain.items import Item


@dataclass(frozen=True, slots=True)
class Retained:
    """What became of one text. `by` names the model, '' where the author's own sentences were taken; `chunks`
    is how many it has, `read` how many of them were read now. `repeated` says that it was retained before,
    and nothing was done; `removed` are facts that went with their chunks, `kept` a person's lines that
    stayed although theirs went; `refused` is what a model proposed and the text does not say."""

    key: str
    item: Item
    path: str = ""
    by: str = ""
    chunks: int = 0
    read: int = 0
    facts: tuple[Fact, ...] = ()
    seen_again: tuple[Fact, ...] = ()
    removed: tuple[Fact, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    repeated: bool = False
    revision: str | None = None
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: Tokens = field(default_factory=Tokens)


def talked_only(model: Model, talked: int, chunks: int) -> str:
    """What to say of a model that called no tool for some of the chunks."""
    return (
        f"{model.name} called no tool for {talked} of {chunks} chunks; of these the author's own sentences "
        "were kept (another UA_MEMORY_MODEL would do better)"
    )
