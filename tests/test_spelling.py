"""Words that were meant: what is guessed, what is not, and that a guess never stands in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_words import made

from ua_memory.index.terms import edit_distance, nearest_spellings, split_query
from ua_memory.index.words import WordIndex as Words
from ua_memory.recall.arms import ParsedQuery as Asked
from ua_memory.recall.arms import parse_query

LINES = (
    "We moved the cluster to Kubernetes in May",
    "Did you receive the parcel from Lisbon?",
    "Set UA_TRUNCATION_THRESHOLD to 150000",
    "Their accommodation was definitely cheap",
    "The Київ office closes; Straße 42",
    "The October cours of Jann and Wasser",
)


@pytest.fixture(scope="module")
def words() -> Words:
    return made(*LINES)


def found(words: Words, asked: Asked) -> list[str]:
    return [item.text for item in words.get([hit.key for hit in words.search(asked.query, 9)])]


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("kubernetse", "kubernetes"),
        ("kuberentes", "kubernetes"),
        ("recieve", "receive"),
        ("receeve", "receive"),
        ("parcle", "parcel"),
        ("UA_TRUNCATON_THRESHOLD", "ua_truncation_threshold"),
        ("accomodation", "accommodation"),
        ("definately", "definitely"),
        ("ofice", "office"),
    ],
)
def test_a_misspelt_word_finds_what_was_meant(words: Words, typed: str, word: str) -> None:
    asked = parse_query(words, f"about {typed}")
    assert asked.corrections[typed.casefold()] == word
    assert word in found(words, asked)[0].casefold()
    assert f"no match for “{typed.casefold()}”: searched for “{word}”" in asked.correction_notes


FOREIGN = (
    "O contato do posto é a Dona Lourdes",
    "Nota fiscal da clínica",
    "Die Rechnung für die Küche kam am Montag",
    "El horario de la biblioteca",
    "Abre tarde pero cierra a las nueve",
)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("posso enviar o contrato?", {}), ("quando foi a nota fical?", {"fical": "fiscal"}),
        ("qual é o cotnato da clínica?", {"cotnato": "contato"}),
        ("wann kam die Rechnug", {"rechnug": "rechnung"}),
        ("wann kam die Rechnnung", {"rechnnung": "rechnung"}), ("wann kam die Buchung", {}),
        ("cuál es el horraio de la biblioteca", {"horraio": "horario"}),
        ("what about the kontato", {"kontato": "contato"}), ("ordena: pera, uva", {}),
    ],
)  # fmt: skip
def test_a_word_of_another_language_is_no_typo(query: str, meant: dict[str, str]) -> None:
    assert parse_query(made(*FOREIGN), query).corrections == meant


@pytest.mark.parametrize(
    "query",
    [
        "receive the parcel",  # known
        "received parcels",  # by their stems
        "recv mai 150001 42x",  # short, numbers
        "Kubernetes2",  # another number
        "octobre",
        "jours",
        "wären",  # of other languages
        "quantum chromodynamics lattice",  # far from all
        '"recieve"',  # quoted: exactly that
        "",
    ],
)
def test_what_is_not_guessed_at(words: Words, query: str) -> None:
    asked = parse_query(words, query)
    assert asked.corrections == {} or asked.query.phrases
    assert asked.query.terms == split_query(query).terms or asked.query.phrases


def test_a_quoted_misspelling_finds_nothing(words: Words) -> None:
    assert found(words, parse_query(words, '"recieve"')) == []


def test_a_misspelt_small_word_says_nothing(words: Words) -> None:
    asked = parse_query(words, "thier parcel")
    assert (
        asked.corrections == {"thier": ""}
        and asked.query.terms == ("parcel",)
        and asked.correction_notes == ()
    )


def test_a_guess_weighs_less_than_a_word_that_was_typed(words: Words) -> None:
    typed, guessed = parse_query(words, "Lisbon receive"), parse_query(words, "Lisbon recieve")
    assert guessed.weights.idf["receiv"] == pytest.approx(0.8 * typed.weights.idf["receiv"])
    assert guessed.words[1].weight == pytest.approx(0.8 * typed.words[1].weight)
    assert guessed.weights.idf["lisbon"] == typed.weights.idf["lisbon"]


def test_nothing_is_looked_up_where_every_word_is_known(words: Words) -> None:
    seen: list[str] = []
    words.db.set_trace_callback(seen.append)
    parse_query(words, "receive the parcel")
    assert not [sql for sql in seen if "grams" in sql]
    parse_query(words, " ".join(f"unknown{chr(97 + n)}word" for n in range(20)))
    assert 0 < len([sql for sql in seen if "FROM grams" in sql]) <= 6
    words.db.set_trace_callback(None)


def test_a_word_that_is_gone_is_not_meant(tmp_path: Path) -> None:
    words = made("the zeppelin lands", words=Words(tmp_path / "words.db"))
    assert parse_query(words, "zepelin").corrections == {"zepelin": "zeppelin"}
    made("the balloon lands", words=words)
    assert parse_query(words, "zepelin").corrections == {}
    words.close()


def test_of_equally_near_words_the_likelier(words: Words) -> None:
    both = made("relieve the guard", "relieve me", "we receive guests")
    assert nearest_spellings(both.db, "recieve") == ["receive", "relieve"]
    assert parse_query(both, "recieve").corrections == {"recieve": "receive"}  # two letters changed places
    assert parse_query(made("a mister", "a minster", "the minster"), "minister").corrections == {
        "minister": "minster"
    }


def test_a_word_that_the_model_knows_is_no_typo(words: Words) -> None:
    better = made("it is better now")
    assert parse_query(better, "the letter").corrections == {"letter": "better"}
    assert parse_query(better, "the letter", None, [(0, 3), (4, 10)]).corrections == {}
    assert parse_query(words, "recieve", None, [(0, 3), (3, 5), (5, 7)]).corrections == {"recieve": "receive"}


@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_edits_are_those_of_the_definition(one: str, other: str) -> None:
    def distance(n: int, m: int) -> int:
        if not n or not m:
            return n + m
        best = min(
            distance(n - 1, m) + 1,
            distance(n, m - 1) + 1,
            distance(n - 1, m - 1) + (one[n - 1] != other[m - 1]),
        )
        swapped = n > 1 and m > 1 and one[n - 2 : n] == other[m - 2 : m][::-1]
        return min(best, distance(n - 2, m - 2) + 1) if swapped else best

    assert edit_distance(one, other, 2) == min(3, distance(len(one), len(other)))
