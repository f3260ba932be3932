"""Observations: proofs that must hold, wordings that stay, days that tell, and what makes one stale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from banks import DAY, Bank, new_bank
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.knowledge import observations
from ua_memory.knowledge.observations import ProofText as Ground
from ua_memory.records import Fact, Observation, Place, Quote
from ua_memory.store.draft import Draft

TODAY = date(2026, 11, 21)
PRICE = "Alice moved the API to Fly.io because Heroku's price doubled."


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def written(bank: Bank, change: Callable[[Draft], Observation]) -> Observation:
    with bank.store.revision("consolidate", door="test") as draft:
        return change(draft)


def made(bank: Bank, text: str, *grounds: Ground) -> Observation:
    return written(bank, lambda draft: observations.add(draft, text, grounds, today=TODAY))


def fact(bank: Bank, text: str = PRICE, **more: object) -> Fact:
    return bank.insert(text, **more).fact


def test_a_new_one_says_what_it_rests_on(bank: Bank) -> None:
    first = fact(bank, entities=("Alice",), tags=("infra", "project:shop", "session:1"))
    old = fact(bank, "Alice left Mailgun.", when="2026-08-02", tags=("project:shop",))
    one = made(
        bank,
        "Alice  chooses providers\nby price.",
        Ground(old, "left Mailgun"),
        Ground(first, "Heroku's price"),
    )
    assert one.place.path == "memory/observations/Alice.md"
    assert bank.text(one.place.path) == (
        "# Alice\n\n"
        f"- Alice chooses providers by price. #infra ^{one.id}\n"
        "  - proofs: 2\n"
        f'  - proof: [[2026-11-21#^{first.id}]] "Heroku\'s price"\n'
        f'  - proof: [[2026-11-21#^{old.id}]] "left Mailgun"\n'
        "  - since: 2026-08-02\n  - last: 2026-11-21\n  - trend: strengthening\n"
        "  - scope: project:shop\n  - entities: [[Alice]]\n"
        '  - tags: ["project:shop"]\n'
    )
    assert observations.find(bank.store, f"^{one.id}") == one
    assert observations.all_observations(bank.store).live == (one,)


def test_without_a_proof_there_is_none(bank: Bank) -> None:
    said = fact(bank, quotes=(Quote("it doubled over night"),))
    wrong = Ground(said, "Heroku's price tripled")
    for grounds in ((), (wrong,), (Ground(said, " "),), (Ground(said, "Heroku's pri"),)):
        with pytest.raises(Malformed):
            made(bank, "Alice chooses by price.", *grounds)
    assert not (bank.root / observations.FOLDER).exists()
    assert made(bank, "Alice chooses by price.", Ground(said, "doubled over night")).proofs


def test_scopes_never_mix(bank: Bank) -> None:
    work = fact(bank, tags=("scope:work",))
    home = fact(bank, "Alice buys the cheap milk.", tags=("topic", "scope:home"))
    with pytest.raises(Malformed, match="mix scopes"):
        made(bank, "Alice is thrifty.", Ground(work, "price"), Ground(home, "cheap milk"))
    one = made(bank, "Alice is thrifty.", Ground(work, "price"))
    assert one.scope == "work"
    facts = observations.all_observations(bank.store).by_id
    with pytest.raises(Malformed, match="mix scopes"):
        written(
            bank, lambda d: observations.revise(d, one, one.text, [Ground(home, "milk")], facts, today=TODAY)
        )


def test_a_persons_line_is_given_an_id_and_stays_theirs(bank: Bank) -> None:
    bank.write('- Bob hates "meetings" before ten.\n- other\n')
    line = observations.all_observations(bank.store).facts[0]
    one = made(bank, "Bob sleeps late.", Ground(line, "before ten"))
    assert bank.text() == f'- Bob hates "meetings" before ten. ^{one.proofs[0].id}\n- other\n'
    assert one.place.path == "memory/observations/Bob.md" or one.place.path.endswith("General.md")


def test_another_wording_keeps_the_old_one(bank: Bank) -> None:
    old = fact(bank, "Alice lives in Porto.", when="2025-05-03")
    one = made(bank, "Alice lives in Porto.", Ground(old, "lives in Porto"))
    new = fact(bank, "Alice moved to Lisbon.", when="2026-05-03")
    facts = observations.all_observations(bank.store).by_id
    text = "Alice lived in Porto, since 3 May 2026 in Lisbon."
    two = written(
        bank,
        lambda d: observations.revise(d, one, text, [Ground(new, "moved to Lisbon")], facts, today=TODAY),
    )
    assert (two.id, two.text, len(two.proofs)) == (one.id, text, 2)
    assert "  - was: Alice lives in Porto. (2026-05-03)\n" in bank.text(two.place.path)
    assert (two.since, two.last) == ("2025-05-03", "2026-05-03")
    with pytest.raises(Malformed, match="needs at least one proof"):
        written(bank, lambda d: observations.revise(d, two, "Other.", (), facts, today=TODAY))


def test_what_is_there_already_changes_nothing(bank: Bank) -> None:
    said = fact(bank)
    one = made(bank, "Price decides.", Ground(said, "price doubled"))
    before = bank.ops()
    facts = {str(said.id): said}
    again = written(
        bank, lambda d: observations.revise(d, one, one.text, [Ground(said, "price")], facts, today=TODAY)
    )
    assert again == one
    assert bank.ops() == before


def test_a_persons_wording_is_strengthened_and_never_changed(bank: Bank) -> None:
    path = "memory/observations/alice.md"
    bank.write("# Alice\n\nOf her.\n\n- Alice is thrifty.\n", path)
    said = fact(bank)
    mine = observations.all_observations(bank.store).live[0]
    with pytest.raises(Malformed, match="a person worded"):
        written(
            bank,
            lambda d: observations.revise(
                d, mine, "Alice is mean.", [Ground(said, "price")], {}, today=TODAY
            ),
        )
    two = written(
        bank, lambda d: observations.revise(d, mine, mine.text, [Ground(said, "price")], {}, today=TODAY)
    )
    assert (two.text, two.origin, len(two.proofs)) == ("Alice is thrifty.", "person", 1)
    assert bank.text(path).startswith("# Alice\n\nOf her.\n\n- Alice is thrifty. ^")


def test_retiring_and_merging_let_nothing_go(bank: Bank) -> None:
    a, b = fact(bank), fact(bank, "Alice compared prices for a week.")
    one, two = (
        made(bank, "Price decides.", Ground(a, "price")),
        made(bank, "The price decides.", Ground(b, "prices")),
    )
    facts = observations.all_observations(bank.store).by_id
    both = written(bank, lambda d: observations.merge(d, one, [two], facts, today=TODAY))
    assert {proof.id for proof in both.proofs} == {a.id, b.id}
    gone = observations.find(bank.store, str(two.id))
    assert gone.retired == f"merged into [[Price#^{one.id}]]"
    with pytest.raises(Usage):
        written(bank, lambda d: observations.retire(d, both, " "))
    assert written(bank, lambda d: observations.retire(d, both, "she changed")).retired == "she changed"
    assert observations.all_observations(bank.store).live == ()
    with pytest.raises(NotFound):
        observations.find(bank.store, str(a.id))


@pytest.mark.parametrize(
    ("days", "word"),
    [
        ([], ""),
        ([0], "new"),
        ([29, 3, 1], "new"),
        ([91], "stale"),
        ([200, 100, 95], "stale"),
        ([80], "weakening"),
        ([200, 150, 100, 50, 2], "steady"),
        ([300, 20, 10, 5], "strengthening"),
        ([80, 75, 70, 65, 60, 5], "weakening"),
        ([40, -3], "steady"),
    ],
)
def test_a_trend_is_read_from_the_days(days: list[int], word: str) -> None:
    assert observations.trend([(TODAY - timedelta(days=n)).isoformat() for n in days], TODAY) == word


@given(st.lists(st.integers(-10, 400), min_size=1), st.integers(1, 300))
def test_trends_are_words_and_end_stale(days: list[int], more: int) -> None:
    told = [(TODAY - timedelta(days=n)).isoformat() for n in days]
    assert observations.trend(told, TODAY) in ("new", "strengthening", "steady", "weakening", "stale")
    assert observations.trend(told, TODAY) == observations.trend(reversed(told), TODAY)
    assert observations.trend(told, TODAY + timedelta(days=120 + more)) == "stale"


def test_the_trend_is_brought_up_to_date(bank: Bank) -> None:
    said = fact(bank)
    one = made(bank, "Price decides.", Ground(said, "price"))
    facts, later = {str(said.id): said}, TODAY + timedelta(days=100)
    two = written(bank, lambda d: observations.update_trend(d, one, facts, today=later))
    assert (one.trend, two.trend) == ("new", "stale")


def test_it_is_stale_when_facts_come_or_go(bank: Bank) -> None:
    said, other = fact(bank, entities=("Alice",)), fact(bank, "Bob moved to Rome.", entities=("Bob",))
    one = made(bank, "Alice chooses providers by price.", Ground(said, "Heroku's price doubled"))
    here = observations.all_observations(bank.store).by_id
    assert not observations.freshness(one, here, [other]).stale
    on_her = replace(other, text="Today Alice chose the dearest.")
    assert observations.freshness(one, here, [on_her]).newer == (on_her,)
    assert not observations.freshness(one, here, [replace(on_her, tags=("scope:work",))]).stale
    assert not observations.freshness(one, here, [replace(on_her, retired="wrong")]).stale
    gone = {k: f for k, f in here.items() if k != said.id}
    for now, told in (
        (gone, "is gone"),
        ({**gone, str(said.id): replace(said, retired="wrong")}, "was retired: wrong"),
        ({**gone, str(said.id): replace(said, text="Something else.")}, "was edited"),
    ):
        (why,) = observations.freshness(one, now, []).why
        assert told in why


def test_names_become_files_that_can_be_found(bank: Bank) -> None:
    from ua_memory.knowledge.observations import choose_file

    def stem(text: str, *names: str, scope: str = "", there: tuple[str, ...] = ()) -> str:
        return choose_file(text, names, scope, there).removeprefix("memory/observations/").removesuffix(".md")

    assert stem("It is cheap.", "Fly.io") == "Fly.io"
    assert stem("Bob knows Alice Pereira.", "Zed", "Alice Pereira") == "Alice Pereira"
    assert stem("We moved to Fly.io last week.") == "Fly.io"
    assert stem("it is so", scope="project:shop") == "project shop"
    assert stem("it is so") == "General"
    assert stem("x", "../..", scope="") == "General"
    assert stem("x", "a/b|c") == "a b c"
    assert stem("x", "2026-11-21") == "On 2026-11-21"
    assert stem("x", "Alice", there=("memory/observations/alice.md",)) == "alice"


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60)


@given(text=_TEXT, words=_TEXT, quote=_TEXT)
def test_no_quote_that_is_not_in_its_fact(text: str, words: str, quote: str) -> None:
    said = Fact(text, quotes=(Quote(words),) if words.strip() else (), place=Place(DAY, 1, 1))
    if observations.has_quote(quote, said):
        from ua_memory.text.grounding import _normalize as _plain

        flat = " ".join(_plain(quote).split())
        assert any(flat in " ".join(_plain(source).split()) for source in observations.sources(said))
