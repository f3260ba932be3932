"""docs/security.md names the test behind each claim: each exists, and no claim stands without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs/security.md").read_text("utf-8")
NAMED = re.findall(r"`(test_\w+\.py)(?:::(test_\w+))?`", PAGE)


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_every_test_that_is_named_exists(file: str) -> None:
    there = set(re.findall(r"^ *def (test_\w+)\(", (HERE / file).read_text("utf-8"), re.M))
    wanted = {name for named, name in NAMED if named == file and name}
    assert wanted <= there, wanted - there


def test_every_claim_names_a_test() -> None:
    claims = re.findall(r"^- .+$", PAGE.partition("\n## ")[2], re.M)
    assert len(claims) >= 40
    assert not [claim for claim in claims if not re.search(r" \(`test_\w+\.py[^()]*\)$", claim)]


def test_the_page_is_two_pages_long() -> None:
    assert 800 < len(re.findall(r"\w+", re.sub(r"`[^`]*`", "", PAGE))) < 1400
