"""What a file holds, and of which day, is told from its path."""

from __future__ import annotations

import pytest
from records_strategies import PATHS

from ua_memory.markdown.lines import FileKind, day_of, kind_of


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("memory/2026-11-21.md", "2026-11-21"),
        ("memory/2026-11-21-slug.md", "2026-11-21"),
        ("memory/2026-11-21-1432.md", "2026-11-21"),
        ("memory/2026-11-21_SLUG.md", "2026-11-21"),
        ("memory/sub/2026-11-21.md", "2026-11-21"),
        ("memory/2026-13-01.md", None),
        ("memory/2026-02-30-x.md", None),
        ("memory/2026-11-21x.md", None),
        ("memory/notes.md", None),
        ("memory/x-2026-11-21.md", None),
        ("MEMORY.md", None),
    ],
)
def test_day_of(path: str, day: str | None) -> None:
    assert day_of(path) == day


def test_kind_of() -> None:
    assert {path: kind_of(path) for path in PATHS.values()} == {
        "memory/2026-11-21.md": FileKind.LOG,
        "memory/observations/alice.md": FileKind.OBSERVATIONS,
        "memory/opinions.md": FileKind.OPINIONS,
        "memory/entities.md": FileKind.ENTITIES,
        "memory/forgotten.md": FileKind.TOMBSTONES,
        "memory/pages/infra.md": FileKind.PAGE,
        "memory/models/alice.md": FileKind.MODEL,
        "memory/documents/d.md": FileKind.DOCUMENT,
        "MEMORY.md": FileKind.CORE,
    }
    assert kind_of("memory.md") is FileKind.CORE
    assert kind_of("memory/MEMORY.md") is kind_of("memory/notes/pages/x.md") is FileKind.LOG
