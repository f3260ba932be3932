"""Asked as people ask: by a tag, a title or a day, by an event, and for somebody who is only described."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from index_bank import a_bank, an_index, log

from ua_memory.config import Config
from ua_memory.index.embedding import Embedder
from ua_memory.index.items import IndexItem
from ua_memory.index.sync import Index
from ua_memory.markdown.document import parse
from ua_memory.recall.search import (
    PROMPT_PASSAGE_LENGTH,
    Hit,
    for_prompt,
    prompt_hits,
    search,
    search_many,
    usefulness,
)
from ua_memory.records import Passage
from ua_memory.text import dates
from ua_memory.text.dates import timing_event
from ua_memory.text.questions import (
    asks_for_tasks,
    has_phone_number,
    is_chore,
    is_order,
    is_question,
    is_request,
    two_questions,
    with_plain_tag,
)

FILES = {
    "memory/2026-09-30.md": log("Sanded the hull and painted it. #boat", "Lunch with Ines at the canteen."),
    "memory/2026-10-07.md": log("6k along the canal, slow. #running", "The report is due on 1 November."),
    "memory/2026-10-11.md": log("Best 5k of the year. #running", "Ordered firewood, two cubic metres."),
    "memory/2026-10-24.md": log("Harbour race: fourth of seventeen, broken pole. #boat"),
    "memory/2026-10-25.md": log("Sore everywhere, won a smoked eel.", "Jan Petersen mended the broken pole."),
    "memory/2026-11-02.md": log(
        "11k in the rain. #running", "The phone number of Jan Petersen is 04348 555117."
    ),
    "memory/2026-09-02.md": log(
        "Entry fee of the harbour race is 95 euros.", "The race office moved to pier 4."
    ),
    "memory/people/Björk Solheim.md": "---\ntags: [friends]\naliases: [Bibi]\n---\n\nLives in Tromsø now.\n",
    "memory/boat/winter list.md": "- [ ] replace batten 3\n- [ ] two zinc anodes\n",
    "memory/work.md": "# Work\n\n## Deployment\n\nBy the pipeline.\n\n```dataview\nLIST FROM #boat\n```\n",
}


@contextmanager
def indexed(root: Path, files: dict[str, str]) -> Iterator[Index]:
    with an_index(a_bank(root, files), Embedder()) as index:
        index.refresh()
        yield index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(tmp_path_factory.mktemp("asked"), FILES) as index:
        yield index


def texts(index: Index, query: str, **how: int) -> list[str]:
    return [hit.item.text for hit in search(index, query, **how).hits]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("#running", "11k in the rain."),
        ("winter list", "replace batten 3"),
        ("where does Björk live", "Lives in Tromsø now."),
        ("Bibi", "Lives in Tromsø now."),
        ("friends", "Lives in Tromsø now."),
        ("deployment", "By the pipeline."),
    ],
)
def test_what_stands_over_a_text_is_searched_as_its_words(index: Index, query: str, text: str) -> None:
    found = texts(index, query)
    assert any(text in one for one in found[:3]), found


@pytest.mark.parametrize("query", ["Tobi", "tobias rainer", "Tobi?"])
def test_a_note_whose_name_is_asked_comes_before_those_that_mention_it(tmp_path: Path, query: str) -> None:
    note = "---\naliases: [TR, Tobi]\n---\n\nTechnician, knows the boreholes. His birthday is on 8 March.\n"
    files = {
        "memory/people/Tobias Rainer.md": note,
        "memory/2026-10-01.md": log(
            "Tobi and Wen carried the drill.", "Tobias Rainer has the key of the shed."
        ),
        "memory/field.md": "# Field\n\nWith Tobi, Tobias Rainer and Wen.\n",
    }
    with indexed(tmp_path, files) as index:
        assert texts(index, query)[0].startswith("Technician")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("what did the router update ruin", "in 2023 a router update ruined a sold-out evening"),
        ("who pulled the plug", "pull the plug, it has to go on"),
    ],
)
def test_a_fact_is_found_by_its_other_fields_and_shows_them(tmp_path: Path, query: str, field: str) -> None:
    fact = """- Gregor wants no cloud service in the dome. #dome ^p02mxnvbaa
  - why: in 2023 a router update ruined a sold-out evening
  - quote: "pull the plug, it has to go on" (turn 4)
"""
    with indexed(tmp_path, {**FILES, "memory/2026-04-01.md": f"## 10:12\n\n{fact}"}) as index:
        found = search(index, query)
        assert (
            found.answered
            and found.hits[0].snippet == f"Gregor wants no cloud service in the dome. ({field})"
        )
        found = search(index, "cloud service in the dome")
        assert found.hits[0].snippet == "Gregor wants no cloud service in the dome."


def test_a_section_that_is_asked_for_by_its_title_is_in_its_own_order(tmp_path: Path) -> None:
    items = ["fill holes with Moltofill", "clean the oven", "photograph the meters", "balcony: leave as is"]
    page = "## Before handing over keys\n\n" + "".join(f"- {item}\n" for item in items)
    with indexed(tmp_path, {"memory/moving.md": page}) as index:
        assert texts(index, "before handing over keys") == items


def test_tags_that_say_where_it_was_said_are_no_words(tmp_path: Path) -> None:
    day = '## 10:46 · claude-code\n<!-- tags: ["harness:claude-code", "basedir:home"] -->\n\n- Bread rises.\n'
    with an_index(a_bank(tmp_path, {"memory/2026-11-20.md": day}), Embedder()) as index:
        assert not search(index, "harness basedir").hits


def test_a_list_that_a_plugin_makes_is_no_hit(index: Index) -> None:
    assert not any("LIST FROM" in one for one in texts(index, "LIST FROM boat", limit=50))
    code = parse(b"```sh\nmake ship\n```\n", "memory/x.md")
    assert [record.text for record in code.of(Passage)] == ["```sh\nmake ship\n```"], "other code is"


def test_what_lies_in_the_days_comes_first_and_the_rest_says_that_it_does_not(index: Index) -> None:
    answer = search(index, "running in October", limit=10)
    inside = [hit.item.text for hit in answer.hits if not hit.outside]
    assert set(inside[:2]) == {"6k along the canal, slow.", "Best 5k of the year."}
    first_outside = [hit.outside for hit in answer.hits].index(True)
    assert all(hit.outside for hit in answer.hits[first_outside:])
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


def test_a_query_that_is_only_a_time_is_given_all_of_it_oldest_first(index: Index) -> None:
    answer = search_many(index, ["what happened in October"], limit=2, whole_days=True)[0]
    assert [hit.item.day[-2:] for hit in answer.hits] == ["07", "07", "11", "11", "24", "25", "25"]
    assert len(search(index, "what happened in October", limit=2).hits) == 2, "who gives a limit gets that"


def test_a_query_that_is_only_a_time_is_given_what_names_it_after_that(tmp_path: Path) -> None:
    files = {
        "memory/2026-10-05.md": log("Terry comes on the first Tuesday of the month.", "Tom has flat feet."),
        "memory/2026-11-17.md": log("The plumber fixed the loo."),
    }
    with indexed(tmp_path, files) as index:
        hits = search(index, "Tuesday 17 November").hits
        assert [hit.item.text for hit in hits] == ["The plumber fixed the loo."]
        hits = search(index, "on Tuesday").hits
        assert [hit.item.text for hit in hits] == [
            "The plumber fixed the loo.", "Terry comes on the first Tuesday of the month.",
        ]  # fmt: skip
        assert [hit.outside for hit in hits] == [False, True] and hits[0].score >= hits[1].score


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("what is on 3 December", "Dentist on 3 December at 14:30."),
        ("dentist next month", "Dentist on 3 December at 14:30."),
        ("rent in January", "The rent goes up from January."),
        ("Flut im März", "Das Wasser kam am 12. März bis zur Tür."),
        ("what is on in May 2027", "Ann's wedding is in May."),
        ("am I free on 12 February", "Passport runs out in March, new photo on 12 February."),
        ("what is on 27 November", "Conference in Lyon from 26 to 28 November."),
        ("where are we on 15 August", "In Velas, with a view of Pico."),
        ("anything on 2 September", None),  # the lease is no news of that day
        ("where do we celebrate christmas this year", "Christmas: Odile comes to us."),
    ],
)
def test_a_day_that_a_fact_only_names_is_asked_for_like_the_day_it_was_said(
    query: str, found: str | None, tmp_path: Path
) -> None:
    said = ("Dentist on 3 December at 14:30.", "The rent goes up from January.", "Ann's wedding is in May.")
    more = (
        "The dentist is Dr Lee.",
        "Passport runs out in March, new photo on 12 February.",
        "Conference in Lyon from 26 to 28 November.",
        "In Velas, with a view of Pico.\n  - when: 2026-08-08/2026-08-18",
        "The lease of the shop.\n  - when: 2026-06-01/2026-12-31",
        "Christmas: Odile comes to us.",
    )
    files = {
        "memory/2026-11-17.md": log(*said, *more),
        "memory/2026-04-02.md": log(
            "Das Wasser kam am 12. März bis zur Tür.", "Im Keller steht nichts mehr."
        ),
    }
    with indexed(tmp_path, files) as index:
        hits = search(index, query).hits
        assert [hit.item.text for hit in hits if not hit.outside] == ([found] if found else [])
        assert hits[0].outside == (found is None)


def test_what_was_said_on_a_day_stands_before_what_only_names_it(tmp_path: Path) -> None:
    files = {
        "memory/2026-05-05.md": log("Knee: MRI on 2 June.", "The knee is swollen."),
        "memory/2026-06-02.md": log("MRI of the knee: the meniscus is torn.", "Lunch with Ines."),
    }
    with indexed(tmp_path, files) as index:
        for query in ("knee on 2 June", "2 June"):
            hits = [hit.item.text for hit in search(index, query).hits if not hit.outside]
            assert hits[0].startswith("MRI of") and "Knee: MRI on 2 June." in hits[1:], query


@pytest.mark.parametrize(
    ("query", "how", "phrase"),
    [
        ("what happened the day after the race", "after", "the race"),
        ("what did she say before we moved to Kiel?", "before", "we moved to Kiel"),
        ("who called two weeks after the concert", "after", "the concert"),
        ("que s'est-il passé la semaine avant l'inspection ?", "before", "l'inspection"),
        ("zwei Tage nach dem Umzug", "after", "dem Umzug"),
        ("la semana antes de la regata, qué pasó", "before", "la regata"),
    ],
)
def test_an_event_in_place_of_a_day_is_read(query: str, how: str, phrase: str) -> None:
    event = timing_event(query)
    assert event and (event.how, event.phrase) == (how, phrase)


def test_the_distance_to_an_event_may_be_a_word_of_another_language() -> None:
    event = timing_event("cuatro semanas después de la regata")
    assert event and (event.how, event.days) == ("after", 28)


@pytest.mark.parametrize(
    "query",
    [
        "the port before 6543", "after that", "what is before", "since when",
        "after the dinner with Ines we sold the boat",
        "chaque jour avant le repas", "le jour avant qu'il parte", "la semaine après", "vor dem Haus",
        "die Lampe vor der Tür", "combien de jours avant la rentrée", "wie viele Tage vor der Abreise",
    ],
)  # fmt: skip
def test_what_names_no_event_is_none(query: str) -> None:
    assert timing_event(query) is None


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("the day after the race", "2026-10-25", "2026-10-26"),
        ("the day before the race", "2026-10-23", "2026-10-24"),
        ("the week after the race", "2026-10-25", "2026-11-01"),
        ("two weeks before the race", "2026-10-10", "2026-10-17"),
        ("three days after the race", "2026-10-27", "2026-10-28"),
        ("deux semaines avant la régate", "2026-10-10", "2026-10-17"),
        ("der Tag nach dem Rennen", "2026-10-25", "2026-10-26"),
        ("after the race", "2026-10-24", None),
        ("before the race", None, "2026-10-25"),
        ("during the race", "2026-10-24", "2026-10-25"),
    ],
)
def test_the_days_of_an_event(query: str, start: str | None, end: str | None) -> None:
    event = timing_event(query)
    assert event
    found = event.window(date(2026, 10, 24))
    assert [one.isoformat() if one else None for one in found] == [start, end]


def test_an_event_is_looked_up_and_named(index: Index) -> None:
    answer = search(index, "what happened the day after the harbour race")
    assert {hit.item.date for hit in answer.hits} == {"2026-10-25"}
    (note,) = answer.notes
    assert note.startswith("“the harbour race” is taken for 2026-10-24 (memory/2026-10-24.md:3: Harbour race")


def test_somebody_who_is_described_is_found_and_then_what_is_asked_of_them(index: Index) -> None:
    found = texts(index, "phone number of the person who mended the broken pole")
    assert found[:2] == [
        "The phone number of Jan Petersen is 04348 555117.",
        "Jan Petersen mended the broken pole.",
    ]


def test_where_nobody_fits_the_description_the_query_is_answered_as_it_stands(index: Index) -> None:
    query = "phone number of the person who stole the bicycle"
    answer = search(index, query)
    assert not answer.answered or answer.hits[0].item.text.startswith("The phone number")
    assert not search(index, "who is the dentist from Dayton").answered


@pytest.mark.parametrize(
    ("query", "first", "second"),
    [
        ("when is our cellist's birthday", "Salvador was born on 3 December.", "Salvador is our cellist."),
        ("when is the lab technician's birthday", "Declan was born on 5 May.", "Declan, our lab technician"),
        (
            "where is the physio with strong hands",
            "Katya's practice is in Mill Lane 12.",
            "Katya, the physio",
        ),
        (
            "what can't our second violinist eat",
            "Odete plays second violin.",
            "Odete is allergic to walnuts.",
        ),
        ("when can I talk to Leonor's teacher", "Ondina Barros", "Ondina Barros"),
        ("what is the man who broke his wrist allergic to", "Gregor is allergic to bees.", "Gregor broke"),
        ("who is our cellist", "Salvador is our cellist.", ""),
        ("what does the painter charge", "The painter Otto charges 30 euros an hour.", ""),
        ("where does the tutor live", "The tutor wrote to Nils.", ""),
        ("where does our treasurer live", "Ann lives in Husum.", "Annual report by Ann, our treasurer."),
        ("our accountant's phone", "Eva Lutz has the phone number 0171 555 6666.", "Eva Lutz."),
    ],
)
def test_a_role_and_a_clause_are_looked_up(roles: Index, query: str, first: str, second: str) -> None:
    found = texts(roles, query)
    assert first in found[0] and second in found[1], found[:3]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("who is the painter and what does he charge", {"The painter Otto charges 30 euros an hour."}),
        (
            "where does our treasurer live, and who is our cellist?",
            {"Ann lives in Husum.", "Salvador is our"},
        ),
        (
            "Where is the boat? When was Salvador born?",
            {"The boat lies at the old pier.", "Salvador was born"},
        ),
        ("when was Salvador born and what does he play", {"Salvador was born", "Salvador is our cellist."}),
        ("who stole the bicycle and where is the boat", {"The boat lies at the old pier."}),
    ],
)
def test_of_two_questions_each_is_answered(roles: Index, query: str, expected: set[str]) -> None:
    answer = search(roles, query)
    first = [hit.item.text for hit in answer.hits[: len(expected) + 1]]
    assert answer.answered and all(any(one in text for text in first) for one in expected), first
    assert len({hit.item.key for hit in answer.hits}) == len(answer.hits)


def test_the_days_of_one_question_are_not_those_of_the_other(roles: Index) -> None:
    answer = search(roles, "what happened in March 2020 and where is the boat")
    assert answer.hits and answer.days is None and not any(hit.outside for hit in answer.hits)


@pytest.mark.parametrize(
    "query",
    [
        "what did she say and when",
        "salt and pepper",
        "what goes on and on",
        "why and how did it break",
        "what are the rules for when and where we eat lunch",
        "what is the difference between what Mia and what Leo think",
        "R&D",
    ],
)
def test_one_question_stays_one(query: str) -> None:
    assert two_questions(query) is None


TASKS = (
    "# Kitchen",
    "",
    "## To do",
    "",
    "- [ ] call the plumber about the sink",
    "- [x] order the tiles",
    "",
    "## Ideas",
    "",
    "- open shelves over the sink",
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what is still open", ["[ ] write to the tax office", "[ ] call the plumber about the sink"]),
        ("my todo list", ["[ ] write to the tax office", "[ ] call the plumber about the sink"]),
        ("what's left to do in the kitchen?", ["[ ] call the plumber about the sink"]),
        ("offene Aufgaben", ["[ ] write to the tax office", "[ ] call the plumber about the sink"]),
        ("what tasks are left?", ["[ ] write to the tax office", "[ ] call the plumber about the sink"]),
        ("was ist zu tun?", ["[ ] write to the tax office", "[ ] call the plumber about the sink"]),
        (
            "what do I still have to do",
            ["[ ] write to the tax office", "[ ] call the plumber about the sink"],
        ),
        ("tasks left in november 2026", ["[ ] write to the tax office"]),
        ("completed tasks", ["[x] renew the passport", "[x] order the tiles"]),
    ],
)
def test_open_and_finished_tasks_are_found(tmp_path: Path, query: str, expected: list[str]) -> None:
    november = log("[ ] write to the tax office", "[x] renew the passport", "The open day is on Friday.")
    files = {"memory/kitchen.md": "\n".join(TASKS), "memory/2026-11-20.md": november}
    with indexed(tmp_path, files) as index:
        answer = search(index, query)
        assert answer.answered
        assert [hit.item.text for hit in answer.hits[: len(expected)]] == expected
        assert not answer.hits[len(expected) :] or answer.hits[len(expected)].score < answer.hits[0].score
        assert not search(index, "open tasks for the garden").answered
        assert texts(index, "when is the open day")[0] == "The open day is on Friday."
        assert not any(hit.score < 0.8 for hit in search(index, "open tasks", min_score=0.8).hits)


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("que me falta por hacer de olmedo", "de olmedo"), ("¿Qué nos queda por hacer?", "¿"),
        ("qué tengo pendiente en la obra", "en la obra"), ("o que me falta fazer", ""),
    ],
)  # fmt: skip
def test_tasks_are_asked_for_without_accents_too(query: str, rest: str) -> None:
    assert asks_for_tasks(query) == ("todo", rest)


def test_open_tasks_below_finished_ones_and_in_core_memory_are_found(tmp_path: Path) -> None:
    kitchen = "# Kitchen\n\n- [x] paint the wall\n  - [ ] buy grout\n* [ ] call the tiler\n"
    core = "# Core\n\n## Tasks\n\n- [ ] call the bank\n- [x] move house\n"
    with indexed(tmp_path, {"memory/kitchen.md": kitchen, "MEMORY.md": core}) as index:
        found = " ".join(texts(index, "my todos"))
        assert all(one in found for one in ("buy grout", "call the tiler", "call the bank"))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("open tasks on Friday", "[ ] call the plumber"),
        ("tâches à faire vendredi", "[ ] call the plumber"),
        ("open tasks from last Friday", "[ ] send the offer"),
        ("open tasks on Wednesday", "[ ] wash the car"),
    ],
)
def test_the_day_of_open_tasks_is_the_next_one_that_has_any(tmp_path: Path, query: str, first: str) -> None:
    days = {"call the plumber": "2026-11-27", "send the offer": "2026-11-20", "wash the car": "2026-11-18"}
    tasks = [f"[ ] {what}\n  - when: {day}" for what, day in days.items()]
    with indexed(tmp_path, {"memory/2026-11-02.md": log(*tasks)}) as index:
        assert texts(index, query)[0] == first


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("Le rendez-vous chez le dentiste est le 5 décembre", "rdv dentiste"),
        ("RDV chez le kiné le 8 décembre", "quand est le rendez-vous chez le kiné"),
        ("Tél. de Bernard : 06 77 88 99 00", "numéro de téléphone de Bernard"),
        ("El teléfono de Marta es 611 222 333", "tfno. de Marta"),
        ("Die Telefonnummer von Anna ist 030 1234567", "Tel.-Nr. von Anna"),
    ],
)
def test_everyday_abbreviations_are_the_words_that_they_stand_for(
    tmp_path: Path, said: str, query: str
) -> None:
    others = ["Marta tiene un gato", "Anna mag Tee", "Bernard a un chien", "le dentiste est un ami"]
    with indexed(tmp_path, {"memory/2026-11-01.md": log(*others, said)}) as index:
        hit = search(index, query).hits[0]
        assert hit.item.text == said and hit.score > 0.7


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("prix du gasoil", []),
        ("numéro de Bernard", []),
        ("prix du fioul", ["Le prix du fioul est de 1,12 € le litre"]),
        (
            "what is the price of the box? and when does the shop open?",
            ["The price of the box is 12 euros", "The shop opens at 9:00"],
        ),
    ],
)
def test_a_hook_adds_to_a_noun_phrase_and_to_two_questions_what_answers_them(
    tmp_path: Path, prompt: str, expected: list[str]
) -> None:
    said = ["Le prix du fioul est de 1,12 € le litre", "Le numéro de téléphone de Claire est 06 12 34 56 78"]
    said += ["The price of the box is 12 euros", "The shop opens at 9:00", "The staging port is 5433"]
    with indexed(tmp_path, {"memory/2026-11-01.md": log(*said)}) as index:
        hits = for_prompt(search(index, prompt), prompt, "", Config()).hits
    assert [hit.item.text for hit in hits][: len(expected) or 1] == expected


def test_the_newest_number_of_another_is_not_that_of_somebody_in_a_table(tmp_path: Path) -> None:
    names = (
        "Anne Le Goff",
        "Bertrand Morvan",
        "Claire Guillou",
        "Denis Kervella",
        "Elise Tanguy",
        "Iris Madec",
    )
    rows = "".join(f"| {name} | 06 12 34 56 {n} |\n" for n, name in enumerate(names, 71))
    said = log("Our phone number is 02 98 00 00 00", "Bertrand repairs the boat", "The rent is 40 euros")
    files = {"memory/club.md": f"# Club\n\n| Name | Phone |\n|---|---|\n{rows}", "memory/2026-11-01.md": said}
    with indexed(tmp_path, files) as index:
        found = search(index, "Bertrand Morvan's phone number")
    assert found.answered and "| Bertrand Morvan |" in found.hits[0].item.text


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("cuanto me cobra Marta por el estudio", "Marta comparte el estudio por 3.450 € al mes"),
        ("quanto cobra o Rui pelo levantamento", "o levantamento do Rui custa 2 mil euros"),
        ("a que hora es la cena con Marta", "la cena con Marta empieza a las 9"),
    ],
)
def test_the_kind_of_an_answer_counts_in_other_languages(tmp_path: Path, query: str, answer: str) -> None:
    others = ["Marta dibuja en el estudio", "o Rui faz o levantamento", "la cena con Marta es en casa"]
    with indexed(tmp_path, {"memory/2026-11-20.md": log(*others, answer)}) as index:
        one = search(index, query).hits[0]
        assert one.item.text == answer and one.parts["kind"] == 1 and one.parts["form"] > 0


def test_a_price_among_foreign_names_is_asked_for_in_english(tmp_path: Path) -> None:
    booked = "booked Lisbon: TAP from Basel 15 june, hotel Mouraria Lodge, 4 nights"
    others = ["sardines at Ramiro 14 euro", "the tram to Graça takes 20 minutes", "Alfama is steep"]
    with indexed(tmp_path, {"memory/2026-06-01.md": log(booked, *others)}) as index:
        one = search(index, "price per night Mouraria Lodge").hits[0]
        assert one.item.text == booked and "form" not in one.parts


@pytest.mark.parametrize(
    ("prompt", "chore"),
    [
        ("run the unit tests", True),
        ("please sort the imports", True),
        ("explain this query line by line", True),
        ("lass den linter laufen", True),
        ("corrige les fautes dans ce texte", True),
        ("write the docs on throttling", False),
        ("runtime errors in production again", False),
        ("add the deposit to the invoice", False),
        ("book a table for this evening", False),
        ("ce soir on dîne avec Mia", False),
        ("est-ce que Mia vient", False),
        ("esta semana viene Mia", False),
        ("lass uns das Essen mit Mia planen", False),
        ("vertaal de tweede alinea", True),
        ("maak deze zin korter graag", True),
        ("wie komt er deze vrijdag", False),
        ("chi viene questa volta", False),
        ("accorcia la terza frase", True),
    ],
)
def test_a_chore_is_about_what_is_at_hand(prompt: str, chore: bool) -> None:
    assert is_chore(prompt) == chore


@pytest.mark.parametrize(
    ("prompt", "order"),
    [
        ("run the tests", True),
        ("fix the lint errors", True),
        ("thanks, commit", True),
        ("commit and push", True),
        ("no, the other one", True),
        ("fix it and run the tests again please", True),
        ("lance les tests", True),
        ("führ die Tests aus", True),
        ("kun je dat nog een keer proberen?", True),
        ("tenta outra vez, por favor", True),
        ("push the fix for the scaler to main", False),
        ("commit the SHOM source", False),
        ("how do we run the tests?", False),
        ("test the nightly export", False),
    ],
)
def test_an_order_names_nothing_but_what_is_at_hand(prompt: str, order: bool) -> None:
    """Each "run the tests" was given four facts on whichever tests had once been spoken of."""
    assert is_order(prompt) == order


def test_a_request_may_have_the_form_of_a_question() -> None:
    for prompt in ("mi prepari una lista per Mia?", "me haces una lista?", "kun je Mia schrijven?"):
        assert is_request(prompt), prompt
    assert not is_request("mi ricordi il nome del medico?")


def test_a_chore_is_given_only_what_it_matches_well(roles: Index) -> None:
    task, chore = "inspect the pier", "list the pier"
    found = search(roles, task)
    matches = (replace(found.hits[0], match=match / 100) for match in range(100))
    hit = next(one for one in matches if usefulness([one], task, found.items) > 0.5)
    some = replace(found, hits=(hit,))
    assert for_prompt(some, task, "", Config()).hits and not for_prompt(some, chore, "", Config()).hits


@pytest.mark.parametrize(
    "query",
    [
        "is the shop still open",
        "open issues with the API",
        "the todo app we used",
        "which items are done",
        "how many items left in stock",
        "pending items in the cart",
        "what should I do for Mia's birthday",
        "what do we do on Friday",
    ],
)
def test_what_only_sounds_like_tasks_is_searched_for(query: str) -> None:
    assert asks_for_tasks(query) is None


def test_a_hit_stands_once_whoever_it_is_about(tmp_path: Path) -> None:
    days = {"2026-11-02": "The dentist is Dr. Weber, Tel. 0341 22345"}
    days["2026-11-20"] = "New dentist: Dr. Haas, Tel. 0341 99887"
    files = {f"memory/{day}.md": log(text) for day, text in days.items()}
    with indexed(tmp_path, files) as index:
        assert texts(index, "What is the dentist's phone number?") == [*days.values()][::-1]


def test_a_telephone_number_is_found_whatever_stands_before_it(tmp_path: Path) -> None:
    """`Tel:` below the name of a note, and a number alone; others have the word, or another's number."""
    notes = {"memory/rosa.md": "# Rosa Olmedo\n\n- Tel: 655 41 20 98\n- Prefiere que la llame por la tarde\n"}
    notes["memory/obra.md"] = "# Obra\n\n- Jefe de obra: Toni Alapont, 622 908 114\n- Rosa acepta 2.340 €\n"
    notes["memory/2026-11-20.md"] = log(
        "el topógrafo es Rui, el teléfono es 912 340 781", "told him on the phone"
    )
    with indexed(tmp_path, notes) as index:
        for query in ("telefono de rosa", "el móvil de Rosa", "Rosa's phone number"):
            answer = search(index, query)
            assert answer.answered and answer.hits[0].item.text == "Tel: 655 41 20 98"
        assert texts(index, "Toni's phone number")[0] == "Jefe de obra: Toni Alapont, 622 908 114"


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("+34 655412098", True), ("(555) 123-4567", True), ("06.12.34.56.78", True), ("0341/123456-7", True),
        ("2026-11-27", False), ("27/11/2026", False), ("2.150.000 €", False), ("2026/034", False),
        ("10:00 a 12:00", False), ("port 5433", False),
    ],
)  # fmt: skip
def test_which_digits_are_a_telephone_number(text: str, has: bool) -> None:
    assert has_phone_number(f"es {text}, creo") is has


QUOTED = (
    "After the dinner with Ines we decided to sell the boat.",
    "We slept badly after the dinner with Ines",
    "In March 2025 the boat stood in the shed",
    "Yesterday we painted the boat",
)


@pytest.mark.parametrize("text", QUOTED)
def test_a_text_is_found_by_itself_whatever_days_it_names(tmp_path: Path, text: str) -> None:
    files = {
        "memory/2025-03-01.md": log("The boat stood in the rain all month."),
        "memory/2026-11-02.md": log("The dinner with Ines was long.", "Buy milk.", *QUOTED),
        "memory/2026-11-20.md": log("We bought paint for the boat."),
    }
    with indexed(tmp_path, files) as index:
        assert texts(index, text)[0] == text


def test_who_has_some_role_is_not_who_is_asked_for(roles: Index) -> None:
    answer = search(roles, "our dentist's birthday")
    assert not answer.answered or "Sara's birthday" not in answer.hits[0].item.text


ROLES = (
    "Salvador is our cellist.",
    "Salvador was born on 3 December.",
    "Katya, the physio, has hands like pliers.",
    "Katya's practice is in Mill Lane 12.",
    "Odete plays second violin.",
    "Odete is allergic to walnuts.",
    "Leonor's teacher is Ondina Barros.",
    "Ondina Barros receives parents on Wednesdays.",
    "Gregor broke his wrist.",
    "Gregor is allergic to bees.",
    "The painter Otto charges 30 euros an hour.",
    "Otto comes on Monday.",
    "The boat lies at the old pier.",
    "The concert was sold out.",
    "We rehearse in the attic.",
    "The tutor wrote to Nils.",
    "Nils lives in Bremen.",
    "Annual report by Ann, our treasurer.",
    "Ann lives in Husum.",
    "My friend Sara is a dentist.",
    "Sara's birthday is on 1 January.",
    "Our accountant was Boris Hahn until 2024.",
    "Our accountant is now Eva Lutz.",
    "Boris Hahn's phone number is 0171 333 4444.",
    "Eva Lutz has the phone number 0171 555 6666.",
    "Declan, our lab technician, repaired the centrifuge.",
    "Declan was born on 5 May.",
)


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(tmp_path_factory.mktemp("roles"), {"memory/2026-11-20.md": log(*ROLES)}) as index:
        yield index


def test_of_equal_texts_the_one_with_the_kind_of_answer_that_is_asked_for_stands_first(
    tmp_path: Path,
) -> None:
    lines = (
        "The harbour fee is collected by Ole.",
        "The harbour fee is 95 euros.",
        "The harbour fee went up.",
    )
    with an_index(a_bank(tmp_path, {"memory/2026-11-20.md": log(*lines)}), Embedder()) as index:
        assert texts(index, "how much is the harbour fee")[0] == lines[1]


def test_a_number_behind_a_word_for_a_price_is_a_sum(tmp_path: Path) -> None:
    said = "The coop announced new costs: rent 1705 from November."
    with an_index(
        a_bank(tmp_path, {"memory/2026-11-20.md": log("Rent paid on 12 May.", said)}), Embedder()
    ) as index:
        assert texts(index, "how much rent do we pay")[0] == said


def test_a_sum_without_a_currency_replaces_another(tmp_path: Path) -> None:
    files = {
        "memory/2026-11-20.md": log("prices: rye went to 5.20"),
        "memory/2026-11-21.md": log("rye is 5.60 now, energy..."),
    }
    with an_index(a_bank(tmp_path, files), Embedder()) as index:
        assert texts(index, "current rye price")[0] == "rye is 5.60 now, energy..."


@pytest.mark.parametrize(
    ("query", "lines", "first"),
    [
        (
            "combien coûte la place de ponton ?",
            ("La place de ponton est louée.", "Place de ponton : 210 €."),
            1,
        ),
        ("à quelle heure ferme le bureau ?", ("Le bureau ferme mardi.", "Le bureau ferme à 18h30."), 1),
        (
            "was kostet der Liegeplatz?",
            ("Der Liegeplatz ist vergeben.", "Der Liegeplatz liegt bei 210 €."),
            1,
        ),
        # Neither is asked for.
        (
            "qui loue la place de ponton ?",
            ("La place de ponton est louée à Ole.", "Une balise coûte 9 €."),
            0,
        ),
    ],
)
def test_the_kind_of_answer_is_known_in_other_languages(
    tmp_path: Path, query: str, lines: tuple[str, str], first: int
) -> None:
    with an_index(a_bank(tmp_path, {"memory/2026-11-20.md": log(*lines)}), Embedder()) as index:
        assert texts(index, query)[0] == lines[first]


ABROAD = {
    "memory/2026-11-20.md": log(
        "Menu du repas : cotriade, puis far. Prix 22 € par adulte.",
        "Le code du portail a changé.",
        "Die Miete der Halle kostet 120 €.",
        "La cuota de la piscina es de 40 €.",
    ),
    "memory/Optimist.md": "# Optimist\n\nPrix neuf : 2 100 €.\n",
}


@pytest.mark.parametrize(
    ("query", "known"),
    [
        ("prix du gasoil", False), ("code du coffre", False), ("code de l'alarme", False),
        ("Miete der Garage", False), ("cuota del gimnasio", False),
        ("prix du repas", True), ("prix des repas", True), ("prix de l'Optimist", True),
        ("code du portail", True), ("Miete der Halle", True), ("cuota de la piscina", True),
    ],
)  # fmt: skip
def test_what_is_asked_of_an_unknown_thing_is_not_answered_by_another(
    tmp_path: Path, query: str, known: bool
) -> None:
    with an_index(a_bank(tmp_path, ABROAD), Embedder()) as index:
        assert search(index, query).answered == known


def test_a_year_is_no_number_of_what_stands_before_it(tmp_path: Path) -> None:
    lines = ("Rates 2027: adult 165 euros, child 78 euros.", "The adult rate is paid by bank.")
    with an_index(a_bank(tmp_path, {"memory/2026-11-20.md": log(*lines)}), Embedder()) as index:
        answer = search(index, "rate child 2027")
        assert answer.hits[0].item.text == lines[0] and answer.answered


LATER = {
    "memory/2026-03-04.md": log("We moved to Leipzig today, third floor.", "Paul sold us the old car."),
    "memory/2026-03-06.md": log("Bought lamps and two chairs."),
    "memory/2026-08-27.md": log(
        "Mum asked whether we had recovered from the move.", "Thinking of a marathon in Berlin."
    ),
    "memory/2026-09-28.md": log("We did not go to the concert.", "Lena dreams of the wedding, no date yet."),
    "memory/visit.md": "---\npeople: [Olga Petrova]\nlocation: Grimma\n---\n\nShe wants the cellar.\n",
}


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with indexed(tmp_path_factory.mktemp("later"), LATER) as index:
        yield index


def test_an_event_is_what_happened_not_what_was_said_of_it_later(later: Index) -> None:
    answer = search(later, "what happened the week after the move")
    assert {hit.item.date for hit in answer.hits} == {"2026-03-06"}


@pytest.mark.parametrize(
    "query", ["after the concert", "the week after the wedding", "after the Hamburg marathon"]
)
def test_what_never_came_is_no_event(later: Index, query: str) -> None:
    assert not any("is taken for" in note for note in search(later, query).notes)


@pytest.mark.parametrize("query", ["in March", "im März", "en marzo", "en mars"])
def test_only_a_time_in_other_languages_lists_the_time_too(later: Index, query: str) -> None:
    assert [hit.item.date for hit in search(later, query).hits] == ["2026-03-04", "2026-03-04", "2026-03-06"]


def test_a_day_has_what_was_noted_on_it_about_other_days(tmp_path: Path) -> None:
    noted = log("The ferry leaves at nine.\n  - when: 2026-12-05")
    with an_index(a_bank(tmp_path, {"memory/2026-11-21.md": noted}), Embedder()) as index:
        answer = search(index, "today")
        assert [hit.item.when for hit in answer.hits] == ["2026-12-05"] and not answer.hits[0].outside


COMING = {
    "memory/2026-11-20.md": log("The dentist has a chair free.\n  - when: 2026-12-05", "Paid the lift.")
}


@pytest.mark.parametrize(
    ("query", "earlier", "start"),
    [
        ("dentist on 5 December", "", "2026-12-05"),
        ("RDV chez le dentiste le 5/12", "", "2026-12-05"),
        ("dentiste du 3/12 au 5/12", "", "2026-12-03"),
        # The past first, where it has anything or is meant.
        ("dentist on 5 December", "2025-12-05", "2025-12-05"),
        ("what did the dentist do on 5 December", "", "2025-12-05"),
        ("dentist on 5 December 2025", "", "2025-12-05"),
        ("dentist since 5 December", "", "2025-12-05"),
        ("dentist on 6 December", "", "2025-12-06"),
    ],
)
def test_a_day_without_a_year_is_the_next_one_if_only_that_has_anything(
    tmp_path: Path, query: str, earlier: str, start: str
) -> None:
    files = {**COMING, **({f"memory/{earlier}.md": log("Sold the sledge.")} if earlier else {})}
    with an_index(a_bank(tmp_path, files), Embedder()) as index:
        days = search(index, query).days
        assert days is not None and days.start == start


@pytest.mark.parametrize("query", ["quoi de neuf depuis hier ?", "was gibt es Neues seit gestern?"])
def test_what_is_new_since_a_day_lists_all_of_it(tmp_path: Path, query: str) -> None:
    with an_index(a_bank(tmp_path, COMING), Embedder()) as index:
        answer = search(index, query)
        assert len(answer.hits) == 2 and not any(hit.outside for hit in answer.hits)


@pytest.mark.parametrize("query", ["Olga Petrova", "Grimma"])
def test_names_in_the_front_matter_of_a_note_are_found(later: Index, query: str) -> None:
    assert texts(later, query)[0] == "She wants the cellar."


def test_a_prompt_is_shown_more_of_a_passage_than_a_list() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    at = text.index("word200")
    hit = Hit(PASSAGE, 1.0, 1.0, f"…{text[at : at + 280]}…")
    (shown,) = prompt_hits([replace(hit, item=replace(PASSAGE, text=text))], "word200", Config())
    assert "word200" in shown.snippet and len(shown.snippet) <= PROMPT_PASSAGE_LENGTH + 2
    assert shown.snippet.startswith("…") and shown.snippet.endswith("…")
    assert (
        prompt_hits([replace(hit, snippet="short", item=replace(PASSAGE, text="short"))], "x", Config())[
            0
        ].snippet
        == "short"
    )


PASSAGE = IndexItem("k", "session", "session", "s.md", 1, 1, 0, None, "", "t", "l", "v")


@pytest.mark.parametrize(
    ("day", "after", "before"),
    [
        ("2026-11-18", "2026-11-21", "2026-11-14"),
        ("2026-11-21", "2026-11-28", "2026-11-14"),
        ("2026-11-22", "2026-11-28", "2026-11-14"),
    ],
)
def test_the_weekend_after_an_event(day: str, after: str, before: str) -> None:
    for how, saturday in (("after", after), ("before", before)):
        event = timing_event(f"what did we do the weekend {how} the regatta")
        assert event is not None and event.phrase == "the regatta"
        first = date.fromisoformat(saturday)
        assert event.window(date.fromisoformat(day)) == (first, first + timedelta(days=2))


def test_a_question_in_german_that_english_words_begin() -> None:
    now = datetime(2026, 11, 25, 10, tzinfo=UTC)
    yesterday, june = "2026-11-24", "2026-06-01"
    asked = {
        "was war gestern": yesterday,
        "gestern Auto": yesterday,
        "wer war gestern da": yesterday,
        "beginning of June": june,
    }
    for query, start in asked.items():
        assert dates.read(query, now, UTC).start == start
    assert not dates.read("what was the war about", now, UTC)
    assert dates.read("beginning of June", now, UTC).end == "2026-06-11"


# -- what is a time, and what is a number --------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "what did I write on 24 October 2026", "notes of 24 October 2026", "what was I up to on 2026-10-24",
        "was habe ich am 24. Oktober 2026 geschrieben", "qué escribí el 24 de octubre de 2026",
    ],
)  # fmt: skip
def test_a_query_that_is_only_a_time_is_answered_by_what_lies_in_it(index: Index, query: str) -> None:
    answer = search(index, query)
    assert answer.answered and answer.hits[0].item.path == "memory/2026-10-24.md"


def test_what_speaks_of_a_number_asks_for_none(tmp_path: Path) -> None:
    facts = {
        "is there a limit on uploads": "There is no limit on uploads.",
        "which code formatter do we use": "The code formatter of all our projects is Ruff.",
        "wer verwaltet das Budget der Feuerwehr": "Karin verwaltet das Budget der Feuerwehr.",
        "how many spare keys are left": "No spare keys are left in the drawer.",
        "who pays the rent of the mill": "The rent of the mill is paid by the parish.",
    }
    with indexed(tmp_path, {"memory/2026-10-07.md": log(*facts.values())}) as index:
        answers = {query: search(index, query) for query in facts}
    assert all(one.answered and one.hits[0].item.text == facts[query] for query, one in answers.items())


@pytest.mark.parametrize(
    "query", ["notes in October 2026", "who did the write-up on 2026-10-24", "log of October 2026"]
)
def test_what_may_be_about_something_is_searched_for_too(tmp_path: Path, query: str) -> None:
    texts = ("The fence was painted.", "Notes on the lease, and a log of the write-up that Tariq wrote.")
    with indexed(tmp_path, {"memory/2026-10-24.md": log(*texts)}) as index:
        assert search(index, query).hits[0].item.text == texts[1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("what did the new bee suit cost", False), ("how many bee suits came", False),
        ("what is wrong with the new bee suit", True), ("who is in charge of the bee suit", True),
        ("how many jars are in the shed", True),
    ],
)  # fmt: skip
def test_who_asks_for_a_number_is_not_answered_by_what_has_none(
    tmp_path: Path, query: str, found: bool
) -> None:
    facts = log(
        "The new bee suit came, its zip is broken, Ines is in charge of it.",
        "Nine honey jars are in the shed.",
    )
    with indexed(tmp_path, {"memory/2026-10-07.md": facts}) as index:
        assert search(index, query).answered == found


@pytest.mark.parametrize(
    ("prompt", "asks"),
    [
        ("que coche tengo", True),
        ("a quién pregunto por la música", True),
        ("cuando termina la obra", True),
        ("um wie viel uhr läuft das backup", True),
        ("wie besprochen, bau das menü um", False),
        ("wie immer bitte auf deutsch", False),
        ("combien coûte le gasoil", True),
        ("come si lancia il test", True),
        ("come up with a name for the boat", False),
        ("de quem preciso do ok", True),
        ("waar ligt de sleutel", True),
        ("con calma, rehaz la tabla", False),
        ("na what now?", True),
    ],
)
def test_a_question_needs_no_question_mark(prompt: str, asks: bool) -> None:
    assert is_question(prompt) == asks


def test_two_words_find_what_is_written_as_one(tmp_path: Path) -> None:
    lines = ["pointed the north wall of the boathouse", "the house has a new roof", "Mia painted the boat"]
    with an_index(a_bank(tmp_path, {"memory/2026-06-01.md": log(*lines)})) as index:
        first, *_ = search(index, "what happened at the boat house").hits
    assert first.item.text.startswith("pointed")


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("tagged music", "#music"),
        ("things with the tag #car", "#car"),
        ("all notes tagged garden/2026 in May", "#garden/2026 in May"),
        ("was ist getaggt mit haus", "#haus"),
        ("notas con la etiqueta obra", "#obra"),
        ("who tagged the release", "who tagged the release"),
        ("what tag does the image have", "what tag does the image have"),
        ("the man with the tag", "the man with the tag"),
    ],
)
def test_a_tag_is_asked_for_in_words(query: str, plain: str) -> None:
    assert with_plain_tag(query) == plain
