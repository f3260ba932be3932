"""Which words the vectors stand for, written beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LAYOUT = "1"


@dataclass(frozen=True, slots=True)
class Mark:
    """Which words these vectors stand for: the word index's epoch and generation, the model, and the cache
    that holds the same texts."""

    epoch: str = ""
    generation: int = -1
    model: str = ""
    layout: str = LAYOUT
    cache: str = ""


def stands_for(mark: Mapping[str, Any], meta: Mapping[str, str]) -> bool:
    """Whether a mark as it was read is that of a word index, by what the index says of itself."""
    return (mark["epoch"], str(mark["generation"])) == (meta.get("epoch"), meta.get("generation"))


def write_mark(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a mark, for this user's eyes only."""
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(value))
    fresh.chmod(0o600)
    fresh.replace(file)
