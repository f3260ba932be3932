"""Where a sentence begins and ends, what decorates it, and the names in it."""

from __future__ import annotations

import pytest

from ua_memory.retain.extract import sentences, without_markup
from ua_memory.text.names import names
from ua_memory.text.wording import around, main_clauses, spans
from ua_memory.text.wording import sentences as plain_sentences


def test_decoration_is_stripped_and_content_is_not() -> None:
    assert without_markup("**Bold** and *italic* and __both__ of `a*b*c` and snake_case_name") == (
        "Bold and italic and both of `a*b*c` and snake_case_name"
    )
    (said,) = sentences("- [x] ✅ **`run`** does [it](https://x.y/z)!")
    assert (said.text, said.quote) == (
        "`run` does [it](https://x.y/z)!",
        "**`run`** does [it](https://x.y/z)!",
    )


def test_sentences_end_where_they_end() -> None:
    assert len(sentences("I am 12. My sister is 14. We live in Kiel.")) == 3
    assert (
        len(sentences("Der Umzug ist am 2.12. Wir brauchen Kisten, Klebeband usw. Die kauft Fa. Meier.")) == 3
    )
    assert (
        len(sentences("Bring cables etc. The van waits 5 min. We say no. We upgraded to 3.12. It works."))
        == 5
    )
    assert len(sentences("Running clears my mind. [a photo] It takes 5 min. [a photo]")) == 3
    assert len(sentences("we had 3. so wholesale orders close at 4pm. fine")) == 3
    for two in (
        "The window is 5 min. Never restart the pod by hand.",
        "Backups take 3 std. Always check them.",
        "Anna's birthday is in Aug. 3 years ago she moved to Lyon.",
        "The vote was no. 12 members left.",
        "No. 5 tests fail.",
        "Acme Corp. Sales are up.",
        "Rent is 900 incl. Heating costs 60 euros.",
        "It takes 20 min. Turn it off.",
        "Upgrade to 3.11. Then deploy.",
        "Release is 2.12. Marc deploys.",
    ):
        assert len(sentences(two)) == 2, two
    text = "See e.g. main.ts (old one. Really) first. Then v1.2.3 at 10 a.m. today! Ok? Dr. Who"
    assert [said.text for said in sentences(text)] == [
        "See e.g. main.ts (old one. Really) first.",
        "Then v1.2.3 at 10 a.m. today!",
        "Ok?",
        "Dr. Who",
    ]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("In 1950 J. Smith met W. B. Du Bois. J. Von Neumann had 12 W. Main Street.", ("Bois.", "Street.")),
        ("He read d'A. Dumas in the U.S. We did not. It is 3 B. The key is.", ("U.S.", "not.", "B.", "is.")),
        ("Ask Dr. Salvi, z. B. on Friday. It takes 30 s. Wait.\nDone", ("Friday.", "30 s.", "Wait.", "Done")),
        ("Which port? – 6543. 「はい。」次です。", ("6543.", "「はい。」", "次です。")),
        ('It asks "on or off?" and waits. "No." Then it left (by bus. Yes).', ("waits.", '"No."', "Yes).")),
        ("## 1. Install\n2. Run `a. b`. *Done.* ok…", ("Install", "b`.", "*Done.*", "ok…")),
        ("...\n\n?!", ()),
    ],
)  # fmt: skip
def test_plain_sentences_of_lines(text: str, ends: tuple[str, ...]) -> None:
    found = plain_sentences(text)
    assert len(found) == len(ends)
    assert all(one.endswith(end) for one, end in zip(found, ends, strict=True))


def test_parts_and_surroundings_of_sentences() -> None:
    text = "We ate. We met Mr. Kühn on Monday; he agreed. Fine."
    assert main_clauses(text) == ["We ate.", "We met Mr. Kühn on Monday;", "he agreed.", "Fine."]
    at = text.index("Monday")
    assert around(text, at, at + 6) == ("We met Mr. Kühn on ", "; he agreed.")
    assert [text[start:end] for start, end in spans(text)][::2] == ["We ate.", "Fine."]


def test_wrapped_lines_are_one_sentence_and_chat_lines_are_each_one() -> None:
    wrapped = "We decided to keep the database where it is, since the contract still\nruns until March."
    assert [said.text for said in sentences(wrapped)] == [wrapped.replace("\n", " ")]
    assert [said.text for said in sentences("tools go to core\nthemes go to modes")] == [
        "tools go to core",
        "themes go to modes",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "We decided to leave AWS because\nthe bill was 900 euros in May.",
        "We decided to leave AWS because\u2028the bill was 900 euros in May.",
        "The bill was 900 euros\nin May.",
        "Note: the contract with Anna Meier ends on 3 May 2027, and the bank of\nKiel wants: a new account.",
        "Alice lives in the Hauptstr.\n12 in Bonn.",
        "Alice lives in the Hauptstr. 12 in Bonn.",
        "We met Dr.\nSmith in May.",
        "Die Rechnung ist seit 3. November überfällig.",
        "Überfällig 3. November, bezahlt wurde nichts.",
        "Mein Büro ist im 2. Stock der Goethestraße 12.",
        "El contrato vence el 1. de mayo.",
        "- we keep Postgres,\n  Redis and Kafka",
        "Wir gehen am 2.12. live und schalten den alten Shop ab.",
        "Urlaub von Jonas: 21.12. bis 6.1.",
        "Am 3.12. Abnahme mit Zebra.",
        "Der Vertrag mit Fa. Meier läuft, d.h. max. 30 Stück inkl. Versand nach Wien.",
        "The board of Acme Corp. met at no. 5 Main Street in Dec. 2026.",
        "Le devis tient env. 3 semaines, min. 200 pièces.",
        "We test more features (compaction, models, etc.) or move on.",
        "Aprox. 400 euros, según la Sra. López, p. ej. para enero.",
        "Ingrid Hartmann, geb. Schmidt, geb. 3.4.1948, kam zu Prof. Dr. med. Brandt.",
        "Il preventivo scade il 5.1. e va firmato dal dott. Rossi.",
    ],
)
def test_no_sentence_is_cut_where_its_line_ends(text: str) -> None:
    (said,) = sentences(text)
    assert said.text == " ".join(text.removeprefix("- ").split())


def test_a_list_knows_what_introduces_it() -> None:
    item, after = sentences("## Plan\n\n**Remaining:**\n- do this\n\nThat is all.")[1:]
    assert (item.heading, item.lead, item.marker) == ("Plan", "Remaining:", "-")
    assert (after.lead, after.marker, after.last) == ("", "", True)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("We moved from Heroku to Fly.io with Jana Novak.", ("Heroku", "Fly.io", "Jana Novak")),
        ("Anthropic Console is where `Tool.Use` and https://Example.com live.", ("Anthropic Console",)),
        ("Use Postgres 17 on Monday.", ("Postgres 17",)),
        ("Replaced MySQL with an API.", ("MySQL",)),
        ("Taking care of pendingMessageContainer. The rest is Bob's.", ("Bob",)),
        ("I think so", ()),
        ("Vom 14. bis 21. August sind wir in Rom.", ("Rom",)),
        ("On Mondays and Fridays I swim with Tom.", ("Tom",)),
        ("Der Kunde heißt Meyer. Die Tests laufen auf Hetzner.", ("Meyer", "Hetzner")),
        ("Mein Steuerberater Udo Weber will die Miete 1.450 Euro ab Januar 2027.", ("Udo Weber",)),
        ("Wir haben mit Frau Öztürk und der Deutschen Bank gesprochen.", ("Öztürk", "Deutschen Bank")),
        ("The lawyer is Ms. Okafor, her aide Mr Lindner.", ("Okafor", "Lindner")),
        ("Tierarzt Dr. Hahn und Freundin Ines kommen.", ("Hahn", "Ines")),
        ("Kundennummer 4471902 bei Vattenfall, mit 250 Mbit.", ("Vattenfall",)),
        ("Er zahlt drei Monatsmieten, eine hohe Kaution und liegt im Soll bei Vonovia.", ("Vonovia",)),
        ("We owe 8.1% Swiss VAT 8.1% to Bern.", ("Swiss VAT", "Bern")),
        (
            "Ich bin am See, Kalium 4,1, Torasemid 10 mg, Dr. Meyer 030 44556.",
            ("Torasemid", "Meyer"),
        ),
        ("Die Behandlung kostet 5 Euro pro Kind.", ()),
        ("I am Helen, at 9 am Tom met Samsung in Room 101.", ("Helen", "Tom", "Samsung", "Room 101")),
        ("Er studiert an der Universität Wien.", ("Universität Wien",)),
        ("We met Bob AGAIN, BEFORE the ALS course.", ("Bob", "ALS")),
    ],
)
def test_names_are_taken_with_caution(said: str, found: tuple[str, ...]) -> None:
    assert names(said) == found
