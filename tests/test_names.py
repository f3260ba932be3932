"""Names in queries, drawn without a model."""

from __future__ import annotations

from time import perf_counter, process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.text.names import entities, name_candidates, names


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("When did Alice move the API to Fly.io?", ("Alice", "Fly.io")),
        ("Caroline's job", ("Caroline",)),
        ("Who is Bob Smith and what of New York", ("Bob Smith", "New York")),
        ("Summarize Melanie and Bob", ("Melanie", "Bob")),
        ("how did we use Docker and PostgreSQL", ("Docker", "PostgreSQL")),
        ("what does UA_TRUNCATION_THRESHOLD do in src/foo.py", ("UA_TRUNCATION_THRESHOLD", "src/foo.py")),
        ("ECONNREFUSED on db-1.example.com:5432", ("ECONNREFUSED", "db-1.example.com:5432")),
        ("mail from bob@example.com about @carol", ("bob@example.com", "@carol")),
        ("readQuery and StateMachine, ABC-123, #42", ("readQuery", "StateMachine", "ABC-123", "#42")),
        ("https://fly.io/docs and 10.0.0.1", ("https://fly.io/docs", "10.0.0.1")),
        ("[[Alice|her]] said `foo bar`", ("Alice", "foo bar")),
        ("parse_day() in cli/times.py", ("parse_day()", "cli/times.py")),
        ("ls ~/projects/ua-memory", ("~/projects/ua-memory",)),
        ("когда Ольга переехала в Киев", ("Ольга", "Киев")),
        ("後任は鈴木さん、画家の中村あゆみさんとスミス様", ("鈴木", "中村あゆみ", "スミス")),
        ("Lumen Pressの表紙はWacom Cintiq 16で", ("Lumen Press", "Wacom Cintiq 16")),
        ("王小姐和김민수 씨", ("王", "김민수")),
        ("お客様と皆さん、お母さん、業者さんへの仕様書", ()),
        ("he/she and/or w/o it", ()),
        ("What is 3.12 of 5/3", ()),
        ("what did we decide on Friday in May", ()),
        ("Tell me why", ()),
        ("Wann kommt Marta?", ("Marta",)),
        ("Quanto é a renda do João?", ("João",)),
        ("Hoe heet de hond van Sanne?", ("Sanne",)),
        ("Mia isst was?", ("Mia",)),
        ("alice and bob", ()),
        ("", ()),
    ],
)
def test_a_query(query: str, named: tuple[str, ...]) -> None:
    assert entities(query) == named


@given(st.text())
def test_what_is_named_stands_in_the_query(query: str) -> None:
    assert all(name in query for name in entities(query))


@pytest.mark.parametrize("piece", ["a+", "A", "a.b", "/a", "_a", "Aa ", "a+" * 90 + " "])
def test_a_pasted_blob_costs_little(piece: str) -> None:
    begun = perf_counter()
    entities((piece * 10_000)[:10_000])
    assert perf_counter() - begun < 2


def test_a_task_and_a_quoted_line_begin_a_sentence() -> None:
    assert names("[x] Llamar al dentista") == names("[ ] Pagar la factura") == ()
    assert names("- [ ] Call Bob tomorrow\n> Ask Anna about it") == ("Bob", "Anna")


def test_an_italian_participle_before_a_name_is_no_part_of_it() -> None:
    assert names("Incontrato Olmo al mercato. Visto Bruno.") == ("Olmo", "Bruno")
    assert names("Renato Olmo viene sabato") == ("Renato Olmo",)


def test_a_greeting_and_a_contraction_are_no_part_of_a_name() -> None:
    assert names("Hey John, I’ve met Maria; Wow, Hello Kitty!") == ("John", "Maria", "Kitty")


def test_a_german_noun_after_an_article_is_no_name() -> None:
    said = "Der Zug mit Jonas fährt um 7 Uhr 42 zum Flughafen, beim Zahnarzt war Giovanni."
    assert names(said) == ("Jonas", "Giovanni")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("We watched The Lord of the Rings with Anna.", ("Lord of the Rings", "Anna")),
        ("Lord of the Rings is her favourite.", ("Lord of the Rings",)),
        (
            "I read The Wheel of Time and Pirates of the Caribbean.",
            ("Wheel of Time", "Pirates of the Caribbean"),
        ),
        ("She is Director of the Louvre, and of Acme.", ("Director", "Louvre", "Acme")),
        ("Part of the team moved to Lisbon.", ("Lisbon",)),
    ],
)
def test_a_title_is_one_name(said: str, named: tuple[str, ...]) -> None:
    assert names(said) == named
    assert {name for name, sure in name_candidates(said).items() if sure} == set(named)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("Wenn Sie die Tabelle öffnen, gehen Sie auf Zeit und Stunde.", ()),
        ("Ich schreibe Ihnen, dass Magnettafeln und Teilzeit fehlen.", ()),
        ("Frau Kowalczyk kommt mit Frauke aus Graz und hat Schlüssel.", ("Kowalczyk", "Frauke", "Graz")),
        ("Der Kassenwart Jürgen hat mit Bosch über Zettel Port 2222 gesprochen.", ("Jürgen", "Bosch")),
        ("Wir nehmen FET und reisen mit der Deutschen Bahn.", ("FET", "Deutschen Bahn")),
        ("Un Renault Trafic a neuf places, retour le 8.", ("Renault Trafic",)),
        ("Tell Rose and Max about the Bank job.", ("Rose", "Max", "Bank")),
    ],
)
def test_common_german_nouns_are_no_names(said: str, named: tuple[str, ...]) -> None:
    assert names(said) == named


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("Ela trabalha no Hospital da Luz.", ("Hospital da Luz",)),
        ("Anna arbeitet im Hospital da Luz.", ("Hospital da Luz",)),
        ("Anna arbeitet im Hospital seit März.", ()),
        ("Ela mora na Santa Casa da Misericórdia do Porto.", ("Santa Casa da Misericórdia do Porto",)),
        ("We met Juan de la Cruz at Museo del Prado.", ("Juan de la Cruz", "Museo del Prado")),
        ("On habite Rue du Bac chez Mario della Valle.", ("Rue du Bac", "Mario della Valle")),
        ("Prazo da Ana é sexta. Hospital do Porto ligou.", ("Ana", "Porto")),
        ("O contato é Dona Ivone da Floricultura Jasmim.", ("Dona Ivone", "Floricultura Jasmim")),
        ("What will Tom do Monday, and what can Ann do Java with?", ("Tom", "Ann", "Java")),
        ("Dann kaufte Anna das Auto des Vaters von Bob.", ("Anna", "Bob")),
        ("Nous avons vu Éric Vasseur avec Óscar.", ("Éric Vasseur", "Óscar")),
        ("Lot: peinture; Fin: 18/12/2026; Entreprise: Élec Anjou", ("Élec Anjou",)),
        ("Le tribunal d'Angers écrit à Élec Anjou.", ("Angers", "Élec Anjou")),
    ],
)
def test_romance_names_are_joined_by_their_small_words(said: str, named: tuple[str, ...]) -> None:
    assert names(said) == named


@pytest.mark.parametrize("word", ["Kubernetes ", "O'Brien's ", "Aa" * 40 + " "])
def test_a_long_row_of_capitalised_words_takes_no_exponential_time(word: str) -> None:
    begun = process_time()
    names(word * 400), entities(f"The {word * 400}")
    assert process_time() - begun < 5  # twelve of them took minutes
