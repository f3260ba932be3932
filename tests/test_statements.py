"""Ids are given where something must cite a line, and nothing else of it changes; links lead to them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from banks import DAY, Bank, new_bank

from ua_memory import discovery
from ua_memory.errors import CannotWrite, Malformed
from ua_memory.knowledge import statements
from ua_memory.markdown import document as markdown
from ua_memory.markdown import fields as markdown_fields
from ua_memory.records import Fact


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def test_a_line_of_a_persons_is_given_an_id_once(there: Bank) -> None:
    there.write("* Alice likes tea. #home\n  more of it\n\nprose\n- another\n")
    fact = markdown.parse(there.bytes(), DAY).of(Fact)[0]
    assert statements.name_of(fact) == f"{DAY}#{markdown.texthash(fact.text)}"
    with there.store.revision("consolidate", door="test") as draft:
        one = statements.ensure_id(draft, fact)
        assert statements.ensure_id(draft, fact) == one == statements.ensure_id(draft, one)
    assert there.text() == f"* Alice likes tea. #home\n  more of it ^{one.id}\n\nprose\n- another\n"
    assert statements.name_of(one) == f"^{one.id}"
    assert (one.text, one.tags, one.said_by) == (fact.text, fact.tags, fact.said_by)
    assert there.ops()[:2] == ["consolidate", "edit"]


def test_a_persons_line_below_an_agents_heading_stays_theirs(there: Bank) -> None:
    said = there.insert("The agent's own.").fact
    there.write(there.text() + "10. Typed by hand.\n")
    fact = markdown.parse(there.bytes(), DAY).of(Fact)[1]
    assert (fact.said_by, said.said_by) == ("person", "agent")
    with there.store.revision("consolidate", door="test") as draft:
        one = statements.ensure_id(draft, fact)
    assert there.text().endswith(f"10. Typed by hand. ^{one.id}\n    - origin: person\n")
    assert (there.find(one.id).said_by, there.find(one.id).text) == ("person", fact.text)


def test_a_line_that_changed_is_not_cited(there: Bank) -> None:
    there.write("- Alice likes tea.\n")
    fact = markdown.parse(there.bytes(), DAY).of(Fact)[0]
    there.write("- Alice likes coffee.\n")
    with pytest.raises(Malformed), there.store.revision("consolidate", door="test") as draft:
        statements.ensure_id(draft, fact)
    assert there.text() == "- Alice likes coffee.\n"


def test_links_are_read_as_they_are_made() -> None:
    made = markdown_fields.link_to("my infra", "k7m2q9x4tb")
    text = f"Moved. {made} [[Alice]] [[2026-11-21#^abc|there]] [[x#heading]] [[#^abc]]"
    assert [(c.file, c.id) for c in markdown_fields.citations(text)] == [
        ("my infra", "k7m2q9x4tb"), ("2026-11-21", "abc"), ("", "abc"),
    ]  # fmt: skip
    first = next(markdown_fields.citations(text))
    assert text[first.start : first.end] == made


def test_what_the_system_cannot_read_now_is_told_to_whom_it_matters(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`forget` and consolidation conclude from what stands nowhere: no file may be left out."""
    there.write("- Alice likes tea.\n")
    real = discovery.open_regular

    def failing(code: int) -> None:
        def opened(path: os.PathLike[str]) -> object:
            if Path(path).name == Path(DAY).name:
                raise OSError(code, os.strerror(code))
            return real(path)

        monkeypatch.setattr(discovery, "open_regular", opened)

    failing(errno.EIO)
    assert DAY not in dict(statements.texts(there.store))
    with pytest.raises(CannotWrite, match="Input/output error"):
        dict(statements.texts(there.store, every=True))
    failing(errno.EACCES)
    assert DAY not in dict(statements.texts(there.store, every=True))
