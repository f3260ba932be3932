"""Words in other languages are found in all their forms, by the index and where no daemon runs."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator

import pytest
from banks import Bank, new_bank
from hypothesis import given, settings
from hypothesis import strategies as st
from test_words import made

from ua_memory.index.terms import (
    distinct_words,
    fts_text,
    guess_languages,
    is_english,
    specific_words,
    split_query,
    stop_words,
)
from ua_memory.index.words import WordIndex
from ua_memory.memory import Memory
from ua_memory.recall.arms import coverage, matching_stems, parse_query
from ua_memory.recall.readonly import COVERAGE, ReadOnlySearch, open_index

BIKE = "Das Fahrrad von Jonas steht im Keller"
LINES = (
    BIKE,
    "Wir haben zwei Verträge mit der Bank",
    "El presupuesto de la casa fue aprobado por Marta",
    "La réunion du mardi est dans la salle bleue",
    "De vergadering met het team is verplaatst naar donderdag",
    "Le riunioni del lunedì sono nella sala verde",
    "A reunião com o banco não foi adiada",
    "Mietzins: 900",
    "Alice bought a boat and news of the harbour",
    "Bob sold the house near the lake, where the drawer was",
    "Die Hausschlüssel liegen bei der Nachbarin",
    "Der Eisbär im Zoo ist nicht mehr da",
    "Die Stromrechnung wird immer am Montag bezahlt",
    "Het wachtwoord van de databaseserver is niet bekend",
    "Er hat das nicht mehr verstanden, der Abend war wunderbar",
)
FOUND = [
    ("Fahrräder", BIKE),
    ("where are the Fahrräder?", BIKE),
    ("Vertrag", LINES[1]),
    ("los presupuestos", LINES[2]),
    ("réunions", LINES[3]),
    ("reunions", LINES[3]),
    ("vergaderingen", LINES[4]),
    ("riunione", LINES[5]),
    ("reuniões", LINES[6]),
    ("reunioes", LINES[6]),
    ("Mietzinsen", LINES[7]),
    ("boats", LINES[8]),
    ("Schlüssel", LINES[10]),
    ("Bären", LINES[11]),
    ("Rechnungen", LINES[12]),
    ("servers", LINES[13]),
]


@pytest.fixture(scope="module")
def words() -> WordIndex:
    return made(*LINES)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    bank = new_bank(tmp_path_factory.mktemp("languages") / "bank")
    for line in LINES:
        bank.insert(line)
    time.sleep(0.06)  # until the files rest
    with Memory(bank.again()) as memory:
        memory.search_many(["x"], by_words=True)
    return bank


@pytest.fixture(scope="module")
def memory(bank: Bank) -> Iterator[Memory]:
    with Memory(bank.again()) as memory:
        while memory.search("x").stale:
            pass
        yield memory


@pytest.fixture(scope="module")
def light(bank: Bank) -> Iterator[ReadOnlySearch]:
    found = open_index(bank.store.bank, bank.store.config.few, bank.store.config.redact)
    assert found
    yield found
    found.close()


@pytest.mark.parametrize(("query", "line"), FOUND)
def test_a_search_finds_other_forms_of_a_word(
    memory: Memory, light: ReadOnlySearch, query: str, line: str
) -> None:
    answer = memory.search(query)
    assert answer.answered and answer.hits[0].item.text == line
    assert memory.search_many([query], by_words=True)[0].hits[0].item.text == line
    assert line in light.recall(query, 3).splitlines()[2]
    assert line in light.for_prompt(query, 3, "", "", 0)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Das Fahrrad steht im Keller", ["german"]),
        ("Fahrräder geputzt", ["german"]),
        ("Los presupuestos de la casa", ["spanish"]),
        ("Les réunions du mardi", ["french"]),
        ("De vergadering is naar vrijdag verplaatst", ["dutch"]),
        ("Le riunioni del lunedì", ["italian"]),
        ("A reunião foi ontem", ["portuguese"]),
        ("quien paga", ["spanish"]),
        ("cuantos metros", ["spanish"]),
        ("tambem nao sei", ["portuguese"]),
        ("perche siamo andati", ["italian"]),
        ("The boat is in the harbour", []),
        ("Maria de la Cruz, dentist", []),
        ("Las Vegas with Juan", []),
        ("ssh to host.example.com as root", []),
        ("Met Otto at the door", []),
        ("", []),
    ],
)
def test_a_language_is_told_by_its_small_words(text: str, spoken: list[str]) -> None:
    assert guess_languages(distinct_words(fts_text(text))) == spoken


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("where does Björk live", True), ("running in October", True), ("clickhouse hosts", True),
        ("Zürich trip", True), ("", True), ("Tag der Feier", False), ("date de l'intervention", False),
        ("résolution", False), ("límite del portal", False), ("歯医者", False),
        ("wann ist der Termin", False),
    ],
)  # fmt: skip
def test_a_query_without_signs_reads_as_english(query: str, english: bool) -> None:
    assert is_english(query) is english


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("quien es celiaco", {"celiaco"}), ("cuanto cobra el fontanero", {"cobra", "fontanero"}),
        ("xq se paro la obra", {"paro", "obra"}), ("q hice ayer", {"hice", "ayer"}),
        ("pq nao abriu a loja", {"abriu", "loja"}), ("perche siamo qui", {"qui"}),
        ("quanto pagava pavan", {"pagava", "pavan"}), ("come ready friday", {"come", "ready", "friday"}),
    ],
)  # fmt: skip
def test_question_words_typed_without_accents_are_not_looked_for(query: str, left: set[str]) -> None:
    assert {*distinct_words(query)} - stop_words(query.split()) == left


def test_a_bank_in_english_knows_no_forms_and_loads_no_stemmer() -> None:
    words = made(*LINES[8:10])
    assert words.db.execute("SELECT count(*) FROM forms").fetchone() == (0,)
    assert words.vocabulary.forms(["drawers", "boats", "presupuestos"]) == {}


def test_a_compound_is_looked_up_by_its_last_word_alone(words: WordIndex) -> None:
    asked = ["schlüssel", "bären", "haus", "bar", "stand", "sen", "reise"]
    assert words.vocabulary.forms(asked) == {
        "schlüssel": ("hausschlüssel",), "bären": ("eisbär",), "haus": ("casa", "house"),
    }  # fmt: skip
    many = made(
        *[f"Der Schlüssel von Nummer {n} ist nicht da" for n in range(5)], "Die Hausschlüssel sind auch weg"
    )
    assert many.vocabulary.forms(["schlüssel"]) == {"schlüssel": ()}


def test_a_compound_for_a_measure_of_a_word_stands_for_it() -> None:
    words = made("De huurprijs van de zaal is 890 euro", "De huurauto staat bij de brug")
    assert words.vocabulary.forms(["huur", "huurprijs"], ("dutch",)) == {
        "huur": ("huurprijs",), "huurprijs": (),
    }  # fmt: skip


def test_a_tuesday_is_no_form_of_a_name() -> None:
    words = made("Marta es la jefa de la casa", "Los martes no hay reunión con el equipo")
    assert words.vocabulary.forms(["martes", "marta"]) == {"marta": ()}


def test_another_form_counts_as_the_word_itself(words: WordIndex) -> None:
    asked = parse_query(words, "vergaderingen")
    assert asked.query.forms == {"vergaderingen": ("vergadering",)} and not asked.corrections
    (key,) = (hit.key for hit in words.search(asked.query, 9))
    item = words.get([key])
    assert coverage(words, asked.weights, item) == {key: 1.0}
    assert matching_stems(words, item, asked.weights.idf.keys(), asked.weights.forms)[key] == {
        "vergaderingen"
    }


def test_a_small_word_beside_it_stands_in_no_way(memory: Memory) -> None:
    assert memory.search("les réunions").hits[0].item.text == LINES[3]


def test_a_word_that_fts5_stems_right_goes_by_its_letters_too(words: WordIndex) -> None:
    asked = parse_query(words, "Vertrag")
    assert asked.query.forms == {"vertrag": ()} and asked.words[0].whole == "vertrag"


def test_a_phrase_stays_as_it_was_quoted(words: WordIndex) -> None:
    assert not words.search(parse_query(words, '"de vergaderingen"').query, 9)


def test_forms_of_what_is_gone_are_not_looked_for() -> None:
    words = made(LINES[4])
    assert words.vocabulary.forms(["vergaderingen"])
    with words.writing():
        words.remove_file(words.items("1 ORDER BY path, line, key")[0].path)
    assert words.vocabulary.forms(["vergaderingen"]) == {}


SAID = (
    "Rent is 900 euros a month",
    "The dentist appointment is on 3 December",
    "Der Schlüssel für den Keller liegt beim Nachbarn",
    "La voiture est garée au niveau -2, place 214",
    "El seguro del coche vence el 15 de enero",
)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("quel est le loyer ?", 0), ("loyer", 0), ("quanto è l'affitto?", 0), ("qual é o aluguel?", 0),
        ("wann ist der Zahnarzttermin?", 1), ("quand est le rendez-vous chez le dentiste", 1),
        ("where is the cellar key", 2), ("où est la clé de la cave", 2), ("wo steht das Auto", 3),
        ("where is the car parked", 3), ("when does the car insurance expire", 4),
    ],
)  # fmt: skip
def test_a_question_finds_what_was_said_in_another_language(query: str, line: int) -> None:
    words = made(*SAID)
    best = words.search(parse_query(words, query).query, 1)
    assert [item.text for item in words.get([hit.key for hit in best])] == [SAID[line]]


@pytest.mark.parametrize(
    "query", ["we had a chat", "the pain in my foot", "bank", "was ist das Land", "fine"]
)
def test_a_word_spelt_like_another_languages_is_not_translated(query: str) -> None:
    words = made("Die Katze und der Hund sind im Garten", "The bread is in the sofa queue", "the end")
    assert not parse_query(words, query).query.forms


VOCABULARY = sorted({word for line in LINES for word in re.findall(r"\w+", line)})
ASKED = st.lists(
    st.sampled_from([*VOCABULARY, *(word for query, _ in FOUND for word in query.split())]),
    min_size=1,
    max_size=5,
)


@settings(max_examples=max(50, settings().max_examples), deadline=None)
@given(ASKED)
def test_the_index_and_the_light_search_look_for_the_same(
    memory: Memory, light: ReadOnlySearch, asked: list[str]
) -> None:
    index, query = memory._index.words, " ".join(asked)
    found = index.search(parse_query(index, query).query, 40)
    texts = {item.text for item in index.get([hit.key for hit in found])}
    sql = "SELECT text FROM items WHERE rowid = ?"
    numbers = [number for number, _ in light._ranked(query, 0.0)]
    assert {light._db.execute(sql, (number,)).fetchone()[0] for number in numbers} == texts
    assert {number for number, _ in light._ranked(query, COVERAGE)} <= set(numbers)


def test_a_light_search_writes_nothing(light: ReadOnlySearch) -> None:
    light.recall("Fahrräder", 3)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        light._db.execute("DELETE FROM items")


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("wo sind die Fahrräder?", ("fahrräder",)),
        ("dónde están los presupuestos nuevos", ("presupuestos", "nuevos")),
        ("où est la réunion de lundi", ("réunion", "lundi")),
        ("where is the die casting", ("die", "casting")),
        ("wie heißt mein Steuerberater", ("steuerberater",)),
        ("cómo se llama mi gestor", ("gestor",)),
        ("cuál era mi tarifa antes", ("tarifa",)),
        ("quel est le prix du pain", ("prix", "pain")),
        ("quel livre j'ai abandonné", ("livre", "abandonné")),
        ("c’est l'adresse qu'il m'a donnée", ("adresse", "donnée")),
        ("l'ho visto dov'è dell'ufficio un'amica", ("visto", "ufficio", "amica")),
        ("bottiglia d'olio", ("bottiglia", "olio")),
        ("D'Angelo and O'Brien", ("angelo", "o", "brien")),
        ("l'", ("l",)),
        ("run llama locally", ("run", "llama", "locally")),
        ("der die das", ("der", "die", "das")),
        ("à qui demander à la voilerie", ("demander", "voilerie")),
        ("prix du gasoil", ("prix", "gasoil")),
        ("mail de Priya", ("mail", "priya")),
        ("IBAN di Audiolab", ("iban", "audiolab")),
        ("Nummer von Anna", ("nummer", "anna")),
        ("le café ferme tard", ("café", "ferme", "tard")),
        ("le ponton est-il fermé", ("ponton", "fermé")),
        ("a-t-on payé Loïc ?", ("payé", "loïc")),
        ("qu'est-ce qu'on a prévu", ("prévu",)),
        ("où est Korrigan en ce moment", ("korrigan",)),
        ("quand aura lieu le repas", ("repas",)),
        ("quando era yoga prima?", ("yoga",)),
        ("quando arriva la prima barca", ("arriva", "prima", "barca")),
        # What only looks like that stays a word.
        ("le lieu du repas", ("lieu", "repas")),
        ("un moment de calme", ("moment", "calme")),
        ("où a-t-il mis le lieu noir", ("mis", "lieu", "noir")),
        ("du -sh size", ("du", "sh", "size")),
        ("what is the de facto standard", ("de", "facto", "standard")),
        ("the bolt-on and the sign-on", ("bolt", "sign", "bolt_on", "sign_on")),
        ("rendez-vous chez le dentiste", ("rendez", "dentiste", "rendez_vous")),
        ("peut-être Porto-Vecchio", ("peut", "porto", "vecchio", "peut_être", "porto_vecchio")),
    ],
)
def test_small_words_of_a_query_are_those_of_its_language(query: str, terms: tuple[str, ...]) -> None:
    assert split_query(query).terms == terms


JAPANESE = (
    "サーバーweb02は東京にあります。",
    "FastAPIからDjangoに移行した。",
    "請求書は毎月25日に発行します。",
)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("web02はどこですか", JAPANESE[0]), ("where is web02?", JAPANESE[0]),
        ("Django", JAPANESE[1]), ("Djangoに移行した理由", JAPANESE[1]),
        ("web03はどこですか", ""), ("Kubernetesはどこですか", ""), ("火星はどこですか", ""),
    ],
)  # fmt: skip
def test_a_latin_name_is_found_among_japanese(
    tmp_path_factory: pytest.TempPathFactory, query: str, line: str
) -> None:
    bank = new_bank(tmp_path_factory.mktemp("japanese") / "bank")
    for each in JAPANESE:
        bank.insert(each)
    with Memory(bank.again()) as memory:
        answer = memory.search(query)
    assert answer.answered == bool(line) and (not line or answer.hits[0].item.text == line)


@pytest.mark.parametrize(
    "prompt",
    [
        "hola!",
        "buenos días",
        "hola, qué tal?",
        "Bom dia, tudo bem?",
        "hello",
        "Guten Morgen",
        "mil gracias",
        "grazie mille, perfetto così",
        "sì, va bene, procedi pure",
        "ottimo lavoro, continua",
        "a domani, buona serata",
        "ok dankjewel, dat was alles",
        "obrigada, ficou ótimo!",
        "prima, ga zo door",
        "ja graag, ga je gang",
        "dank je wel voor je hulp",
        "oui c'est bon, tu peux continuer",
        "muchas gracias, perfecto así",
        "passt so, vielen Dank",
        "sim, pode continuar",
        "thanks a lot, that's all",
        "sounds good, let's do it",
        "ciao, come va?",
        "hoi, hoe gaat het?",
        "hallo, wie geht's?",
        "hey, how are you?",
    ],
)
def test_a_courtesy_asks_for_nothing(prompt: str) -> None:
    assert not specific_words(prompt)
    assert "morgen" in specific_words(f"{prompt} was ist morgen")


def test_a_small_word_is_no_form_of_another() -> None:
    index = made(
        "La tienda de la playa abre el lunes pero cierra el martes", "Compramos peras para la tienda"
    )
    assert index.vocabulary.forms(["pera"], ()) == {"pera": ()}
