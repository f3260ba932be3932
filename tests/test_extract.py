"""The flush without a model: what is kept, word for word, and what not. The conversations are made up."""

from __future__ import annotations

import io
import random
import re
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from ua_memory.clients.messages import text_form, text_parts, title_day
from ua_memory.clients.transcripts import read
from ua_memory.clients.turns import Turn
from ua_memory.records import Fact
from ua_memory.retain import extract as extraction
from ua_memory.retain import subagent
from ua_memory.retain.extract import Extraction, extract, extract_without_model
from ua_memory.retain.extract_by_model import Chunk, TextContext, split_text
from ua_memory.retain.subagent import PHRASES, Candidate
from ua_memory.text.grounding import locate

FRIDAY = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)


def talk(*lines: tuple[str, str], at: datetime | None = FRIDAY) -> list[Turn]:
    return [Turn(f"t{n}", role, text, at) for n, (role, text) in enumerate(lines, 1)]  # type: ignore[arg-type]


def person(text: str) -> list[Candidate]:
    return extract(talk(("person", text)))


def assistant(text: str, *after: tuple[str, str]) -> list[Candidate]:
    """What is kept of an assistant's turn; `after` follows it, else the conversation ends there."""
    found = extract(talk(("assistant", text), *after))
    return [candidate for candidate in found if candidate.turn == "t1"]


def texts(found: list[Candidate]) -> list[str]:
    return [candidate.text for candidate in found]


# -- what is kept --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "I prefer tabs over spaces in the Makefile.",
        "please never reformat the vendored files",
        "This is the mockup; the checkout button must always be green.",
        "We moved the API to Fly.io because Heroku doubled its price.",
        "Let's use Postgres 17 instead of MySQL.",
        "My sister Jana is allergic to peanuts.",
        "Alice from Acme wants the report by 2026-12-01.",
        "Our wedding is on 12 June 2027.",
        "the concert starts on May 3rd",
        "the old links should be kept alive for a year, right?",
        "parsers, printers and the lexer -> core",
        "We still need to handle the rounding of cents, but not today.",
        "We still need to write the docs for the webhook.",
        "next time import the other four zones, then delete modules/legacy_vpc",
        "and the coverage gate is gone, ci only reports it now.",
        "squash merging is off since yesterday, auditors want the full history.",
        "the kafka cluster gets replaced by redpanda in december.",
        "lib/pq out, pgx v5 in, with CopyFrom.",
        "agree, we stay on dagster.",
        "we should alert in slack when the nightly fails. channel #tidepool-alerts",
        "retention of events.raw: streaming team changed it to 48h today, priya told me",
        "bi-export turned out to be lena btw, analytics",
        "PayPayに決めました。",
        "タブよりスペースが好きです。",
        "妻の名前は由美子です。",
        "mia nonna si chiama ada, abita a lecco",
        "mio fratello ha comprato una casa a Como",
        "luca non vuole piu fare nuoto, da gennaio fa judo il giovedi",
        "la riunione con il cliente è spostata a giovedì alle tre",
        "mijn zus woont in Zwolle en werkt bij de gemeente",
        "dokter bos gaat stoppen en vanaf december is dokter mulder onze nieuwe huisarts",
        "de reservesleutel ligt onder de blauwe pot",
        "ik eet geen vlees meer sinds maart",
        "der Zweitschlüssel liegt unter dem Blumentopf",
    ],
)
def test_what_a_person_decides_prefers_and_tells_is_kept(said: str) -> None:
    assert texts(person(said)) == [said]


@pytest.mark.parametrize(
    "said",
    [
        "SQLite doesn't support dropping a constraint from a table.",
        "The session was lost because the cookie had no domain.",
        "The whole import epic is implemented and pushed to Hetzner.",
        "The key fix: the parser requires a final newline.",
        "The ingest service listens on 9420 now; I replaced 9317 in 5 files, including the policy.",
        "The AWS provider is pinned to `~> 6.2` (was 5.76).",
        "I raised the timeout of the probe to 30 s.",
        "After `EXCHANGE TABLES readings AND readings_v2` the table has 387 GB.",
        "Open for next time: the consumer on `ingest.dlq`; messages that failed 5 times stay in the stream.",
    ],
)
def test_what_an_assistant_found_out_or_brought_about_is_kept(said: str) -> None:
    assert texts(assistant(said)) == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Let me check the config because the tests fail.",
        "Great, now I'll replace the parser, which requires a newline.",
        "Now let me run the tests, because the parser was replaced.",
        "Perfect! All 12 tests pass.",
        "I see the issue.",
        "Want me to switch to Postgres instead of MySQL?",
        "First, let me remove the old code because it breaks the build:",
        "The trouble is that both readers were split because of:",
        "- `src/a.py`\n- `src/b.py`, `src/c.py`, `src/d.py`\n- config.ts, main.ts, cli.ts, args.ts",
        "- Model resolution\n- Session loading (for resume)",
        "```python\nx = decide()  # we decided to always use this because it is fast\n```",
        "| decided | because |\n|---|---|\n| we decided to use it | because it was removed |",
        "> We decided to use Postgres because MySQL was slow.",
        "## We decided to use Postgres because MySQL was slow",
        "Great work! The old importer was replaced because the",
    ],
)
def test_boilerplate_code_tables_quotations_and_half_sentences_are_not(said: str) -> None:
    assert assistant(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "ok",
        "thanks, that's great",
        "did you push?",
        "why are there 2 handlers?",
        "now run the tests and commit",
        "read main.ts in full, then continue",
        "Write a haiku for the 404 page about autumn leaves",
        "please add Swiss VAT 8.1%",
        "yes needs to be clean",
        "Nein, auf keinen Fall.",
        '{"type":"message","text":"we decided to always use this because it must be"}',
        "2026-11-20 09:31:07 ERROR pool timeout after 30s (active=20 idle=0) there it is again.",
        "TypeError: we always need this because it must be\n    at read (app.ts:12:3)",
        "E   AssertionError: assert 10.00 == Decimal('10.01')\ntests/test_fees.py:203: AssertionError",
        "the button is gone, fix that",
        "python: can we go to 3.12 yet",
    ],
)
def test_errands_questions_thanks_and_pasted_output_are_not(said: str) -> None:
    assert person(said) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("My API key is [redacted: anthropic-key] and the db password: [redacted: password].", False),
        ("The password for staging is always [redacted: password].", False),
        ("Das Passwort ist jetzt immer [redacted: password].", False),
        ("Das Passwort der Datenbank ist [redacted: password], der Key lautet [redacted: key].", False),
        ("La contraseña nueva es siempre [redacted: password].", False),
        ("パスワードはいつも[redacted: password]です。", False),
        (
            "We rotate the Stripe key [redacted: stripe-key] every 90 days because the auditors ask for it.",
            True,
        ),
    ],
)
def test_a_sentence_that_was_only_a_secret_is_not_kept(said: str, kept: bool) -> None:
    assert bool(extract(talk(("person", said)))) == kept
    chunk = extract_without_model(Chunk(said, "x"), TextContext(FRIDAY))
    assert bool(chunk.facts) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "Helen: I never eat fish. I hate boats.",
            ["Helen: I never eat fish.", "Helen: I hate boats."],
        ),
        ("Lucía: Vale. Nunca como marisco", ["Lucía: Nunca como marisco"]),
        (
            "Zoé : Je ne mange jamais de poisson. Je préfère toujours le train.",
            ["Zoé: Je ne mange jamais de poisson.", "Zoé: Je préfère toujours le train."],
        ),
        (
            "Mark: I prefer tea over coffee\nTom: I hate its taste\n\nI never drink it at night.",
            [
                "Mark: I prefer tea over coffee",
                "Tom: I hate its taste",
                "Tom: I never drink it at night.",
            ],
        ),
        (
            "Decision: we use Postgres 17 because of JSON. We never use MySQL 5 again.",
            ["Decision: we use Postgres 17 because of JSON.", "We never use MySQL 5 again."],
        ),
    ],
)
def test_what_a_named_speaker_says_is_theirs(said: str, kept: list[str]) -> None:
    assert texts(person(said)) == kept
    chunk = extract_without_model(Chunk(said, "x"), TextContext(FRIDAY))
    assert [fact.text for fact in chunk.facts] == kept


@pytest.mark.parametrize(
    "note",
    [
        "Model: our washing machine is a Bosch WTW876 from 2021",
        "Agent: our travel agent is Maria Lopez, phone 555-1234",
        "2026-05-12 14:30 - The server was moved to rack 7 by Nadia",
        "[12/05/2026, 14:30] The server was moved to rack 7 by Nadia",
        "12/05/2026, 14:30 - Meeting with the architect: the kitchen wall goes.\n13/05/2026, 10:00 - Call.",
        "The rack is full.\n\n```\n[2026-05-12 14:30:02] INFO: started\n```\n\nNadia moved in 2024.",
        "The rack is full.\nFrom: ana@example.org\n\nThe database is Postgres 16 on db1.",
        "Flight To Rome 10:40 AM\nThe seat is 14C.\nTaxi to Hotel 2:30 PM\nIt costs 90 euros.",
        "User: Bo Baker, from 9 to 5\nAgent: Maria Lopez, from 6 to 9",
        "User: can read all files of the team\nAssistant: can write reports for Mrs Jones on Monday",
        "Benutzer: Peter Klein aus Graz nutzt es\nAssistent: Frau Meier hilft montags im Büro 3",
        "Claude: +49 170 1234567\nUser: 12345",
        "Utente: mario.rossi\nAssistente: Giulia Bianchi",
        "2026/11/18 (Wed)\n09:15\tDentist Dr Weber\tbring the X-ray from Graz\n11:00\tSwimming\tin the lake",
        "On 5 May 2026 we met Anna Berg:\n- She sells boats.",
        "Am 3. Mai 2026 schrieb ich eine Mail an Eva.",
        "Umzug\n12. Dezember 2026\nGestern habe ich Kisten gekauft.",
        "Rent is due on\nNovember 5, 2026\nand costs 900 euros.",
        "Berlin, den 31. Februar 2026\n\nGestern war Ruhe.",
        "Berlin, 31.2.2026\n\nGestern war Ruhe.",
        "Born in Kiel, 3 April 1948\nHe came yesterday.",
        "Hartmann, Ingrid, 3.4.1948\nSie nimmt seit gestern Torasemid.",
        "Tom said:\n> I live in Kiel.\nHe moved yesterday.",
        "Contacts\n\nUser: Bo Baker\nAgent: Maria Lopez\n\n## Garden\n\nTom built the shed in 2019.",
    ],
)
def test_a_note_with_a_line_like_those_of_a_chat_is_its_author_s(note: str) -> None:
    (part,) = text_parts(note, FRIDAY, text_form(note))
    assert (part.role, part.speaker, part.text) == ("person", "", note)


HELEN, MARGARET = "Helen: I never eat fish.", "Margaret: We meet at the station tomorrow at 10"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "[12/10/2026, 18:02:11] Helen: The plumber comes tomorrow at 9\n"
            "[12/10/2026, 18:05:02] Helen: I never eat fish. I hate boats.\n",
            [
                ("Helen: The plumber comes tomorrow at 9", "2026-10-13"),
                (HELEN, None),
                ("Helen: I hate boats.", None),
            ],
        ),
        ("12/10/2026, 18:04 - Margaret: We meet at the station tomorrow at 10", [(MARGARET, "2026-10-13")]),
        ("12.10.26, 18:04 - Margaret: We meet at the station tomorrow at 10", [(MARGARET, "2026-10-13")]),
        ("10/13/26, 6:04 PM - Margaret: We meet at the station tomorrow at 10", [(MARGARET, "2026-10-14")]),
        ("12/10/26, 6:04 pm - Margaret: We meet at the station tomorrow at 10", [(MARGARET, None)]),
        ("12/10/2026, 18:04 - Messages are encrypted by 2 keys.\n12/10/2026, 18:05 - You: I never eat fish.",
            [("I never eat fish.", None)]),
        (
            "Jon Pike  9:15 AM\nok!\nMara Lind  9:17 AM\nWe meet at the station tomorrow at 10\n"
            "We decided on 3 March 2025 to keep Postgres.\nJon Pike  9:18 AM\nfine",
            [
                ("Mara Lind: We meet at the station tomorrow at 10", None),
                ("Mara Lind: We decided on 3 March 2025 to keep Postgres.", "2025-03-03"),
            ],
        ),
        (
            "From: Helen Price <helen@example.com>\nTo: Margaret <m@example.com>\n"
            "Date: Tue, 10 Nov 2026 09:12:00 +0100\nSubject: The boiler\n\nHi,\n\n"
            "The boiler broke yesterday because of the frost.\n",
            [("Helen Price: The boiler broke yesterday because of the frost.", "2026-11-09")],
        ),
        *(
            (f"{head}\n\nDear Tom,\nThe boiler broke yesterday because of the frost.",
                [("The boiler broke yesterday because of the frost.", "2026-11-04")])
            for head in ("Nantes, le 5 novembre 2026", "Berlin, den 5. November 2026", "November 5, 2026",
                "Jo Smith\nMain Street 5\n\nKöln, 05.11.2026", "Plan B\nDatum: 5.11.2026",
                "Bologna, 5 novembre 2026")
        ),
        (
            "3. November 2026\nIch war in Bonn und Kiel.\n\n5. November 2026\nGestern kam der Rollator 300.",
            [("Ich war in Bonn und Kiel.", None), ("Gestern kam der Rollator 300.", "2026-11-04")],
        ),
        (
            "# Grue\n\n## 5 mars 2026\nLa grue a été montée hier.\n\n"
            "## 2 mai 2026\nAli est absent jusqu'au 11 mai.",
            [("La grue a été montée hier.", "2026-03-04"), ("Ali est absent jusqu'au 11 mai.", "2026-05-11")],
        ),
        *(
            (f"My phone number is 555-0142.\n\n{head}\n\n> I never eat fish.\n> We met yesterday in Rome.\n\n"
                "The door code is 4711.",
                [("My phone number is 555-0142.", None), ("Eva Roth: I never eat fish.", None),
                 ("Eva Roth: We met yesterday in Rome.", "2026-11-02"), ("The door code is 4711.", None)])
            for head in ("On Tue, Nov 3, 2026 at 4:12 PM Eva Roth <eva@x.org> wrote:",
                "Am Di., 3. Nov. 2026 um 10:14 Uhr schrieb Eva Roth <eva@x.org>:",
                "Am 03.11.2026 um 10:14 schrieb Eva Roth:",
                "Le mar. 3 nov. 2026 à 10:14, Eva Roth <eva@x.org> a écrit :",
                "> From: Eva Roth\n> Sent: Tuesday, November 3, 2026 3:15 PM\n> To: Jo")
        ),
        (
            "[LINE] 大野さんとのトーク履歴\n保存日時：2026/11/20 10:00\n\n2026/11/10(火)\n"
            "09:18\t私\t契約書は明日送ります。\n09:20\t大野\tお疲れ様です。\n"
            "09:21\t大野が退出しました\n09:22\t大野\t請求額は33万円です。",
            [("契約書は明日送ります。", "2026-11-11"), ("大野: 請求額は33万円です。", None)],
        ),
        ("Tue, 11/24/2026\n09:18 AM\tTom\tThe plumber comes tomorrow at 9\n09:19 AM\tTom\tok",
            [("Tom: The plumber comes tomorrow at 9", "2026-11-25")]),
        ("Gesendet: Dienstag, 10. November 2026 09:12\n\nWe decided yesterday to leave Heroku.",
            [("We decided yesterday to leave Heroku.", "2026-11-09")]),
        (
            "You said:\nI charge 19% VAT in Kiel.\nChatGPT said:\nGreat question! Here are some options:\n"
            "- Lexoffice – popular in Germany\nYou should always keep your invoices for 10 years.",
            [("I charge 19% VAT in Kiel.", None)],
        ),
    ],
)  # fmt: skip
def test_exported_chats_and_mails_say_who_speaks_and_when(text: str, kept: list[tuple[str, str]]) -> None:
    (chunk,) = split_text(text)
    facts = extract_without_model(chunk, TextContext(FRIDAY)).facts
    assert [(fact.text, fact.when) for fact in facts] == kept


def test_a_conversation_in_french_has_blanks_before_its_colons() -> None:
    text = (
        "Zoé Aubry : Mme Petit, où en est-on ?\n"
        "Mme Petit\u202f: L'expert dit que le joint du voile 3 manque.\n"
        "Zoé Aubry : Envoie les photos à Luc avant mercredi."
    )
    (chunk,) = split_text(text)
    assert [fact.text for fact in extract_without_model(chunk, TextContext(FRIDAY)).facts] == [
        "Zoé Aubry: Mme Petit, où en est-on ? – Mme Petit: L'expert dit que le joint du voile 3 manque.",
        "Zoé Aubry: Envoie les photos à Luc avant mercredi.",
    ]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("# Minutes no. 20 - Thursday 30 April 2026\n\n- Ann", "2026-04-30"),
        ("---\ntitle: Plan\n---\n# Plan (C, 24 mars 2026)\nCe qui suit", "2026-03-24"),
        ("Weekly report (6–10 April 2026)\n\nThe crane stands.", "2026-04-10"),
        ("Compte rendu du 03/04/2026\n\nNous parlons de la grue.", "2026-04-03"),
        ("Call with Northgate, 6 May 2026\n\nAnn: Hi", "2026-05-06"),
        ("Call with Northgate, 6 May 2026", None),  # no title, but all of it
        ("On 3 May 2024 we moved into the old\nhouse of my aunt.", None),
        ("On 3 May 2024 we moved.\n\nIt rained.", None),
        ("# Meeting of 12 December 2026\n\nIt is to come.", None),
        ("# Meeting of 12 December, plan of 2026\n\nIt is to come.", None),
        ("5 March 2026\nI was in Rome.\n\n6 March 2026\nI was in Bari.", None),  # a diary
    ],
)
def test_the_day_of_a_text_is_in_its_title(text: str, day: str | None) -> None:
    found = title_day(text, FRIDAY)
    assert (found and found.date().isoformat()) == day


def test_an_exported_chat_is_flushed_by_its_messages() -> None:
    chat = (
        "12/10/2026, 18:05 - Tom: I'm allergic to nuts. I never eat them.\n"
        "12/10/2026, 23:59 - Helen: We decided to arrive tomorrow because of the kids\n"
    )
    found = extract(read(io.BytesIO(chat.encode())))
    assert {one.at for one in found} == {datetime(2026, 10, 12, 12, tzinfo=UTC)}  # in no known zone
    assert [(one.text, one.when) for one in found] == [
        ("Tom: I'm allergic to nuts.", None),
        ("Tom: I never eat them.", None),
        ("Helen: We decided to arrive tomorrow because of the kids", "2026-10-13"),
    ]


def test_a_later_chunk_of_a_mail_knows_who_wrote_it_and_when() -> None:
    head = "From: Helen <helen@example.com>\nDate: Tue, 10 Nov 2026 09:12:00 +0100\n\n"
    filler = "\n\n".join("It says no more than that. " * 20 for _ in range(12))
    last = split_text(f"{head}{filler}\n\nThe boiler broke yesterday because of the frost.\n")[-1]
    facts = extract_without_model(last, TextContext(FRIDAY)).facts
    assert ("Helen: The boiler broke yesterday because of the frost.", "2026-11-09") in [
        (fact.text, fact.when) for fact in facts
    ]


def test_a_later_chunk_of_a_chat_knows_the_day_of_its_messages() -> None:
    filler = "\n".join(f"09:18\tTom\t{'It says no more than that. ' * 20}" for _ in range(12))
    chunks = split_text(f"2026/11/10(火)\n{filler}\nThe boiler broke yesterday because of the frost.\n")
    facts = extract_without_model(chunks[-1], TextContext(FRIDAY)).facts
    assert len(chunks) > 1 and ("Tom: The boiler broke yesterday because of the frost.", "2026-11-09") in [
        (fact.text, fact.when) for fact in facts
    ]


def _facts_of(*lines: str) -> list[Fact]:
    (chunk,) = split_text("\n".join(lines))
    return list(extract_without_model(chunk, TextContext(FRIDAY)).facts)


@pytest.mark.parametrize(
    ("user", "agent"),
    [
        ("Usuário:", "Assistente:"), ("Utente:", "Assistente:"), ("Usuario:", "Asistente:"),
        ("Benutzerin:", "Assistent:"), ("Utilisateur :", "Assistant :"), ("Eu:", "IA:"),
        ("ユーザー：", "アシスタント："), ("ユーザー:", "アシスタント:"), ("用户：", "助手："),
        ("**User:**", "**Assistant:**"), ("## 用户", "## 助手"), ("Hai detto:", "ChatGPT ha detto:"),
    ],
)  # fmt: skip
def test_a_pasted_conversation_is_told_by_labels_of_any_language(user: str, agent: str) -> None:
    said = ["The rent is 900 euros.", "I suggest Astra at 50 euros. Shall I send invoice 31 today?"]
    answer = "After I have read clause 4."
    lines = [f"{user}\n{said[0]}", f"{agent}\n{said[1]}", f"{user}\n{answer}"]
    kept = [said[0], f"Shall I send invoice 31 today? – {answer}"]
    for text in lines, [line.replace("\n", " " if "#" not in user else "\n") for line in lines]:
        assert [fact.text for fact in _facts_of(*text)] == kept


@pytest.mark.parametrize(("user", "agent"), [("User: ", "Assistant: "), ("ユーザー：", "アシスタント：")])
def test_two_labels_of_an_agent_make_a_conversation(user: str, agent: str) -> None:
    facts = _facts_of(f"{user}The rent is 48 euros. No wait, 52.", f"{agent}Noted, 52 euros.")
    assert [fact.text for fact in facts] == ["The rent is 48 euros. No wait, 52."]
    assert text_form(f"{user}When is the rent due?\n{agent}On the 5th of a month.").labels


def test_two_lines_of_a_note_are_two_facts() -> None:
    lines = [
        "Benutzer: Peter Klein aus Graz nutzt das Konto",
        "Assistent: Frau Meier hilft montags im Büro 3",
    ]
    assert [fact.text for fact in _facts_of(*lines)] == lines


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "Labor: Kalium 4,1 mmol/l\nTherapie:\nTorasemid 10 mg\nApixaban 5 mg\nAllergien: Penicillin",
            ["Labor: Kalium 4,1 mmol/l", "Therapie: Torasemid 10 mg; Apixaban 5 mg", "Allergien: Penicillin"],
        ),
        (
            "Reha Nord\n\nPatientin: Ida Busch\nPflegegrad: 2\nTochter: Ute Busch, 0172 5556677",
            ["Reha Nord: Patientin: Ida Busch", "Ida Busch – Pflegegrad: 2",
             "Ida Busch – Tochter: Ute Busch, 0172 5556677"],
        ),
        (
            "Plan für Ida Busch\nStand: 8.11.2026\n\nmorgens: Ramipril 5 mg\nabends: 0\nBei Bedarf: Novalgin",
            ["Plan für Ida Busch: morgens: Ramipril 5 mg", "Plan für Ida Busch: abends: 0",
             "Plan für Ida Busch: Bei Bedarf: Novalgin"],
        ),
        (
            "Übergabe 26.11.\n\nZi. 12 Frau Adler: Sturz um 16:20 Uhr, keine Verletzung, Tochter informiert\n"
            "Zi. 14 Herr Benn: Fieber 38,4\nZi. 17: frei",
            ["Übergabe 26.11.: Zi. 12 Frau Adler: Sturz um 16:20 Uhr, keine Verletzung, Tochter informiert",
             "Übergabe 26.11.: Zi. 14 Herr Benn: Fieber 38,4", "Übergabe 26.11.: Zi. 17: frei"],
        ),
        ("Dr. Meyer 030 44556\nFrau Kunze 0171 2223344", ["Dr. Meyer 030 44556", "Frau Kunze 0171 2223344"]),
        ("Recette\n\nIngrédients :\n- 5 œufs\n- 200 g de noix", ["Ingrédients: 5 œufs; 200 g de noix"]),
        ("Packliste\n\n[ ] Helm\n[x] Seil\n\nSwimming: towel, cap",
            ["Packliste: Helm; Seil", "Swimming: towel, cap"]),
        ("Contacts :\nMme Morel, voisine 06 11 22 33 44\ngarde@soins.fr (garde)",
            ["Contacts: Mme Morel, voisine 06 11 22 33 44", "Contacts: garde@soins.fr (garde)"]),
        ("Betreff: Herr Aigner\nEr war bei uns in Kur.\n\nHilfsmittel: keine\n\nGestern stürzte er in Bonn.",
            ["Er war bei uns in Kur.", "Gestern stürzte er in Bonn."]),
        ("Shopping list\nMilk\n6 eggs", ["Shopping list: Milk; 6 eggs"]),
        ("Einkaufsliste\n- Milch\n- 6 Eier", ["Einkaufsliste: Milch; 6 Eier"]),
        ("# ua\n\n## Questions\n- When?\n- Where?", []),
        ("## Contents\n- [Usage](#usage)\n- [License](#license)", []),
        ("See [Usage](#usage) and [License](#license) for 3 ways.",
            ["See [Usage](#usage) and [License](#license) for 3 ways."]),
        ("Dogs:\n1. Jan\n2. April\n3. June\n4. Max", ["Dogs: Jan; April; June; Max"]),
        ("## Allergies\n- nuts\n- fish\n\n## Likes\n- jazz", ["Allergies: nuts; fish", "Likes: jazz"]),
        ("Drinks:\n- tea\n\nFood:\n- rice\n\nI had tea and rice in Kiel on 3 May 2026, for 14 euros.",
            ["Drinks: tea", "Food: rice", "I had tea and rice in Kiel on 3 May 2026, for 14 euros."]),
        ("From: Bonn\nTo: Kiel\nDate: 3 May 2026\nSeat: 45",
            ["From: Bonn", "To: Kiel", "Date: 3 May 2026", "Seat: 45"]),
        ("Party\n12 December 2026\nWe meet at Anna's. Tomorrow I buy the drinks.",
            ["Party 12 December 2026 We meet at Anna's. Tomorrow I buy the drinks."]),
        ("Metformine\n\nmatin: 1\nmidi: 0\nsoir: 1",
            ["Metformine: matin: 1", "Metformine: midi: 0", "Metformine: soir: 1"]),
        ("einkauf:\nMilch\n6 Eier\n\napotheke:\nSalbe", ["einkauf: Milch; 6 Eier", "apotheke: Salbe"]),
        ("server:\n  host: localhost\n  port: 80\nDatabase:\n  Name: shop\n  User: admin\n  Port: 54", []),
        ("GET /x HTTP/1.1\nHost: example.org\nUser-Agent: curl/8\nAccept: text", []),
        ("HTTP/1.1 200 OK\nContent-Type: text/html\nServer: nginx\nAge: 12", []),
        ("Name: web\nImage: nginx:1.25\nPort: 80", ["Name: web", "Image: nginx:1.25", "Port: 80"]),
        ("host: localhost\nport: 8080\nuser: tom", []),
        ("Anna: ich komme\nBen: ich auch\nClara: ich nicht\nAnna: super", []),
        ("- Milch\n- Eier\n- Brot", []),
        ("Roses are red\nViolets are blue\nSugar is sweet\nAnd so are you", []),
        ("I told her: 'I live at the lake'.\nTom: ok.", ["I told her: 'I live at the lake'."]),
        (
            "BROOK Sound\n\nItem               Qty      Price\nSpeakers             2      50.00\n"
            "Mixer, 16 lines      1      80.00\n\nPayment       half in advance\nValid until   1 March 2027\n"
            "Set-up        Friday, 2 pm",
            ["Item: Speakers; Qty: 2; Price: 50.00", "Item: Mixer, 16 lines; Qty: 1; Price: 80.00",
             "BROOK Sound: Payment: half in advance", "BROOK Sound: Valid until: 1 March 2027",
             "BROOK Sound: Set-up: Friday, 2 pm"],
        ),
        ("Name\tSize\tHouse\nIda\t38\tEast", ["Name: Ida; Size: 38; House: East"]),
        ("|  |  |\n|---|---|\n| Work | Fee |\n| Revision | 35 € |", ["Work: Revision; Fee: 35 €"]),
        ("He came.  She left.  They met.\nI was home.  It rained.  We slept.", []),
        (
            "TOWN OF COMACCHIO - Culture\nGRANT FORM\n\nApplicant: Ida Busch\nOffice: Elena Tagli, int. 214\n"
            "Number: 2026/31877",
            ["GRANT FORM: Applicant: Ida Busch",
             "GRANT FORM: Office: Elena Tagli, int. 214", "GRANT FORM: Number: 2026/31877"],
        ),
        (
            "---\ntitle: Rondine\ntags: [client]\ndate: 2026-09-10\nrate: 18 € a page\nstatus: open\n---\n\n"
            "Code: KRR6\nOffice: Bonn\nPays: late",
            ["Rondine – rate: 18 € a page", "Rondine: Code: KRR6", "Rondine: Office: Bonn",
             "Rondine: Pays: late"],
        ),
        ("Art. 4. The text is due by 15 January 2027.", ["Art. 4. The text is due by 15 January 2027."]),
        ("Anna works in Bonn since May.\n\n© Anna Busch · Privacy · Cookies",
            ["Anna works in Bonn since May."]),
    ],
)  # fmt: skip
def test_lists_and_forms_are_kept_with_their_titles(text: str, kept: list[str]) -> None:
    assert [fact.text for fact in _facts_of(text)] == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("»Ich wohne am See«, sagte der Fuchs, »und habe drei Kinder.« \"Mein Bau ist groß\", rief der Dachs."
            " \"Er hat 5 Türen.\" Am 3. Mai kam der Hase nach Kiel.",
            ["\"Er hat 5 Türen.\"", "Am 3. Mai kam der Hase nach Kiel."]),
        ("“I was born in Kiel,” said the fox. “I hate fish,” the bear said.\n\n« J'habite à Lyon », dit Leo."
            "\n\n“My mother lives in Bonn.”\n\nWe read this chapter on 3 May.",
            ["We read this chapter on 3 May."]),
        ("\"I live in Kiel,\" I said. \"I have two kids,\" I said. \"I eat no fish,\" I told the doctor.",
            ["\"I live in Kiel,\" I said.", "\"I have two kids,\" I said.",
             "\"I eat no fish,\" I told the doctor."]),
        ("Es regnet. \"Ich ziehe im Mai nach Kiel\", sagte Anna. \"Mein Vertrag endet im April.\" Kalt.",
            ["\"Ich ziehe im Mai nach Kiel\", sagte Anna. \"Mein Vertrag endet im April.\""]),
        ("\"I raise the rent in May,\" said the landlord. \"My brother is ill,\" said the landlord. Fine.",
            ["\"I raise the rent in May,\" said the landlord.", "\"My brother is ill,\" said the landlord."]),
        ("Da sprach der Esel: \"Ich gehe nach Bremen.\" \"Ich bin alt\", klagte der Hund. Er ging. "
            "Am 3. Mai war Ruhe.",
            ["Am 3. Mai war Ruhe."]),
        ("My doctor said 'I want you to take 5 mg.' 'I will call you on 3 May,' said my sister Ute. "
            "\"I have your kids,\" said the nurse. \"I live in Bonn,\" said the nurse.",
            ["My doctor said 'I want you to take 5 mg.'", "'I will call you on 3 May,' said my sister Ute.",
             "\"I have your kids,\" said the nurse.", "\"I live in Bonn,\" said the nurse."]),
        ("Mom called. \"I am moving to Kiel in May,\" she said. \"I sold it for 300 euros,\" she said. Fine.",
            ["\"I am moving to Kiel in May,\" she said.", "\"I sold it for 300 euros,\" she said."]),
    ],
)  # fmt: skip
def test_what_creatures_of_a_tale_say_is_not_its_reader_s_life(text: str, kept: list[str]) -> None:
    assert [fact.text for fact in _facts_of(text)] == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Termine: 3.12. Röntgen, 10.12. Kontrolle bei Dr. Lang, Station 4.",
            {"Termine: 3.12. Röntgen": "2026-12-03",
             "Termine: 10.12. Kontrolle bei Dr. Lang, Station 4": "2026-12-10"}),
        ("Nos rendez-vous : 12 novembre notaire; 1er décembre déménagement",
            {"Nos rendez-vous: 12 novembre notaire": "2026-11-12",
             "Nos rendez-vous: 1er décembre déménagement": "2026-12-01"}),
        ("Dienstplan\n1. Dezember: frei\nDo, 24.12. Nachtdienst mit Aylin",
            {"Dienstplan: 1. Dezember: frei": "2026-12-01",
             "Dienstplan: Do, 24.12. Nachtdienst mit Aylin": "2026-12-24"}),
        ("Turnos de diciembre:\n1/12 mañana\n24/12 noche con Marta",
            {"Turnos de diciembre: 1/12 mañana": "2026-12-01",
             "Turnos de diciembre: 24/12 noche con Marta": "2026-12-24"}),
        ("Termine:\n1. Februar: Zahnarzt\n3. März: Röntgen",
            {"Termine: 1. Februar: Zahnarzt": "2027-02-01", "Termine: 3. März: Röntgen": "2027-03-03"}),
        ("Team:\n1. Jan Meier\n2. Mark Schulz\n3. April Jones",
            {"Team: Jan Meier; Mark Schulz; April Jones": None}),
        ("Rent\n- 1.1. 900 euros\n- 1.2. 950 euros",
            {"Rent: 1.1. 900 euros": "2027-01-01", "Rent: 1.2. 950 euros": "2027-02-01"}),
        ("Subject: Lease\nDate: 3 May 2026\nTo: Anna\n\nYesterday I signed the lease in Kiel.",
            {"Subject: Lease": None, "To: Anna": None,
             "Yesterday I signed the lease in Kiel.": "2026-05-02"}),
        ("- 3 May: went to Rome\n- 5 May: go to Kiel",
            {"3 May: went to Rome": "2026-05-03", "5 May: go to Kiel": "2027-05-05"}),
        ("Trips: May 3 to Rome, May 9 to Bari. We come back on May 12.",
            {"Trips: May 3 to Rome, May 9 to Bari.": None, "Trips: We come back on May 12.": "2027-05-12"}),
        ("1.1. Einleitung\n1.2. Methode\n2.1. Ergebnis", {}),
        ("3.1. Zahnarzt\n4.5. Kontrolle", {"3.1. Zahnarzt": "2027-01-03", "4.5. Kontrolle": "2027-05-04"}),
        ("Appointments:\n- Dec 4 dentist\n- Dec 15, 10:30 MRI",
            {"Appointments: Dec 4 dentist": "2026-12-04", "Appointments: Dec 15, 10:30 MRI": "2026-12-15"}),
        ("Wir treffen uns am\n3.12. um 10 Uhr in Bonn und am\n10.12. in Kiel.",
            {"Wir treffen uns am 3.12. um 10 Uhr in Bonn und am 10.12. in Kiel.": None}),
    ],
)  # fmt: skip
def test_each_line_of_a_list_of_days_has_its_day(text: str, kept: dict[str, str | None]) -> None:
    assert {fact.text: fact.when for fact in _facts_of(text)} == kept


def test_of_minutes_the_present_the_votes_and_the_tasks_are_kept() -> None:
    facts = _facts_of(
        "Minutes of the board, 13 November 2026", "Present: Ada, Ben, Chioma. Absent: Dmitri.", "",
        "1. Budget. The budget of 2027 was approved at 48,000 euros. Ben voted against.",
        "2. AOB. Chioma will ask the lawyer about the statutes.",
    )  # fmt: skip
    assert [(fact.text, fact.when, fact.entities) for fact in facts] == [
        (
            "Minutes of the board, 13 November 2026 – Present: Ada, Ben, Chioma; Absent: Dmitri",
            None,
            ("Ada", "Ben", "Chioma", "Dmitri"),
        ),
        ("The budget of 2027 was approved at 48,000 euros. Ben voted against.", None, ("Ben",)),
        ("Chioma will ask the lawyer about the statutes.", None, ("Chioma",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "This will take time.", "That will be hard to explain.", "It will be fine for all.",
        "Nobody has to pay for this today.", "Das wird schon wieder gut.", "Jemand soll das machen bitte.",
        "Cela va durer longtemps.", "Esto va a durar mucho.", "Il va pleuvoir demain matin.",
        "How to cook rice at home.", "What to do with the bins.", "Up to you in the end.",
    ],
)  # fmt: skip
def test_a_task_has_a_name_and_not_all_of_a_long_list_are_kept(text: str) -> None:
    costs = [f"The tool {n} costs {n + 3} euros." for n in range(14)]
    names = [f"{first}{last}ur" for first in ("K", "T", "B", "D") for last in ("elm", "orv", "alp", "usk")]
    tasks = [f"{name} will paint the fence." for name in names]
    facts = [fact.text for fact in _facts_of(" ".join([*costs, text, *tasks]))]
    assert text not in facts and sum("fence" in each for each in facts) == 12


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("Je travaille chez Orange à Lyon. Par contre oui.", False),
        ("Unser Hund hört auf Bello. Dagegen hilft nichts.", False),
        ("We use Python 3.12. Everyone against me.", False),
        ("The budget of 2027 was approved at 48,000 euros. Two abstained.", True),
        ("Der Haushalt 2027 wurde mit 48.000 Euro beschlossen. 3 dagegen.", True),
        ("The budget of 2027 was approved at 48,000 euros. Ben was against.", True),
    ],
)
def test_a_vote_is_part_of_the_sentence_before(text: str, joined: bool) -> None:
    assert (texts(extract(talk(("person", text)))) == [text]) is joined


def test_who_was_at_a_meeting_is_kept_with_its_heading() -> None:
    facts = _facts_of("## Sitzung am 20. November 2026", "Anwesend: Ada, Jörg", "Entschuldigt: Dmitri")
    assert [fact.text for fact in facts] == [
        "Sitzung am 20. November 2026 – Anwesend: Ada, Jörg; Entschuldigt: Dmitri"
    ]


def test_a_short_answer_in_a_chat_is_kept_with_the_question() -> None:
    facts = _facts_of(
        "[14.11.26, 18:03:30] Tim: Treffen wir uns am Donnerstag um 19 Uhr im Café Grundmann?",
        "[14.11.26, 18:04:02] Jana: Ok dann Freitag 20 Uhr.",
        "[14.11.26, 18:05:00] Tim: Bringst du Lena mit?",
        "[14.11.26, 18:05:02] Jana: Ja!",
        "[14.11.26, 18:06:00] Tim: Alles klar bei dir?",
        "[14.11.26, 18:06:02] Jana: Ja!",
    )
    asked = "Tim: Treffen wir uns am Donnerstag um 19 Uhr im Café Grundmann?"
    assert [(fact.text, fact.when) for fact in facts] == [
        (f"{asked} – Jana: Ok dann Freitag 20 Uhr.", "2026-11-20"),
        ("Tim: Bringst du Lena mit? – Jana: Ja!", None),
    ]
    assert "Café Grundmann" in facts[0].entities
    facts = _facts_of(
        "[14.11.26, 18:03:30] Tim: when does the contract with Hetzner end",
        "[14.11.26, 18:04:02] Jana: on 31 March 2027",
    )
    asked = "Tim: when does the contract with Hetzner end?"
    assert [fact.text for fact in facts] == [f"{asked} – Jana: on 31 March 2027"]
    facts = _facts_of("User: Hi", "Assistant: Shall I restart the server on port 5432?", "User: yes")
    assert facts == []


def test_an_answer_of_a_named_person_is_kept_with_the_question() -> None:
    asked = ["Thiago: Has he paid invoice 0024?", "Thiago: Is the tax number the same?"]
    said = ["Julia: Not yet, he pays on the 5th.", "Julia: No, it changed: it is now 45.678.901/0001-23."]
    facts = _facts_of(asked[0], said[0], asked[1], said[1], "Julia: Please send invoice 25 on Friday.")
    assert [fact.text for fact in facts] == [
        f"{asked[0]} – {said[0]}", f"{asked[1]} – {said[1]}", "Julia: Please send invoice 25 on Friday.",
    ]  # fmt: skip
    facts = _facts_of("Notes of the board", "", *asked[:1], *said[:1], "", "Decision: we use Postgres 16.")
    assert facts[0].text == f"{asked[0]} – {said[0]}"


@pytest.mark.parametrize(
    "note",
    [
        "Question: When does the shop open?\nAnswer: At 9 on Monday.",
        "Host: When does the shop open?\nGuest: At 9 on Monday.",
        "Julia: The shop opens at 9 on Monday.\nThiago: It closes at 6 on Sunday.",
        "Thiago: When does the shop open?\nAI: At 9 on Monday.",
        "Ibuprofen: 400 mg, with food or without?\nParacetamol: 500 mg, at most three times a day",
        "Kafka: do we restart it on Friday?\nPostgres: upgraded to 16 in March",
        "Oma: Bücher oder Schal?\nOpa: Wein aus der Steiermark",
        "Porto: Hotel Adler, how many nights?\nBraga: Hotel Sol, three nights",
        "Teig: 300 g Mehl oder 400?\nFüllung: 1 kg Äpfel",
        "Anna: Geschenk kaufen, was nur?\nLena: zum Zahnarzt bringen\nLena: Schuhe kaufen",
        "Who has the key?\nWhere is the van?\nThiago: When does the shop open?\nJulia: At 9.\nOh no.",
    ],
)
def test_what_no_person_asks_another_is_no_conversation(note: str) -> None:
    assert text_form(note).stamps == ()


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Who has the keys?", "happy birthday Carl!"), ("What time is the film?", "hi all"),
        ("Where should we meet?", "no clue"), ("What do you mean?", "the thing"),
        ("Can you believe Trump won in 2016?", "ya"), ("Did you see Tom?", "yeah lol"),
    ],
)  # fmt: skip
def test_small_talk_in_a_chat_is_no_answer(question: str, reply: str) -> None:
    said = _facts_of(f"[14.11.26, 18:03:30] Anna: {question}", f"[14.11.26, 18:04:02] Ben: {reply}")
    assert not said


def test_a_later_chunk_of_an_agent_s_answer_is_not_the_owner_s() -> None:
    told = "\n".join(f"{n}. The tool number {n} costs {n + 3} euros in {1990 + n % 30}." for n in range(160))
    pasted = f"You said:\nI charge 19% VAT.\nChatGPT said:\n{told}\nYou said:\nI live in Ulm, not Kiel."
    chunks = split_text(pasted)
    facts = [fact.text for each in chunks for fact in extract_without_model(each, TextContext(FRIDAY)).facts]
    assert len(chunks) > 2 and facts == ["I charge 19% VAT.", "I live in Ulm, not Kiel."]


def test_tool_turns_are_never_read() -> None:
    assert extract(talk(("tool", "Bash echo 'we decided to use Postgres because I prefer it': ok"))) == []


# -- where it was said ---------------------------------------------------------------------------------


def test_a_closing_summary_weighs_more_than_narration_on_the_way() -> None:
    said = "We replaced the parser in three places."
    assert assistant(said, ("tool", "Edit a.py: ok"), ("person", "ok")) == []
    assert texts(assistant(f"## Summary\n\n- {said}", ("person", "ok"))) == [said]


def test_a_persons_words_weigh_more_than_the_assistants() -> None:
    said = "We decided to switch to Postgres because of its JSON type."
    both = extract(talk(("assistant", said + " Really."), ("tool", "x: ok"), ("person", said)))
    assert [candidate.who for candidate in both] == ["person"]
    assert both[0].seen == ("t1",)


def test_a_refused_proposal_is_dropped_and_its_findings_stay() -> None:
    reply = (
        "## Root cause\n\nThe upload fails because the proxy requires a length.\n\n"
        "## Plan\n\nWe'll switch to Nginx because it buffers.\n\nShould I go on?"
    )
    found = assistant(reply, ("person", "no, not like this"))
    assert texts(found) == ["The upload fails because the proxy requires a length."]


@pytest.mark.parametrize(
    "said", ["perfect, lets do it like that", "ja genau, so machen wir es", "exacto", "はい、そうです"]
)
def test_what_the_person_confirms_is_kept(said: str) -> None:
    found = "I would swap the lates in week 46 with Dorota's, that keeps everybody within hours."
    assert found in texts(assistant(found, ("person", said)))
    assert found not in texts(assistant(found, ("person", "hm, what else could we do?")))


def test_what_a_person_takes_back_is_not_kept() -> None:
    found = extract(
        talk(
            ("person", "I want all parsers in one module."),
            ("assistant", "Done."),
            ("person", "actually, let's not. I want each parser in its own module."),
        )
    )
    assert texts(found) == ["I want each parser in its own module."]


@pytest.mark.parametrize(
    "turns, kept",
    [
        (
            ("Use Node 18 for the build.", "Done.", "correction: Node 20"),
            "18 for the build. – correction: Node 20",
        ),
        (
            ("The server has 8 GB of RAM.", "Heap is 4 GB now.", "Eigentlich sind es 16 GB."),
            "RAM. – Eigentlich",
        ),
        (
            ("Deploys happen on Fridays at 16:00.", "ok", "sorry, Thursdays, not Fridays"),
            "16:00. – sorry, Thu",
        ),
        (
            ("Wir nehmen Postgres statt MySQL.", "Ok.", "Nein, doch MySQL, wegen Hosting."),
            "MySQL. – Nein, doch",
        ),
        (("Let's set the memory limit to 512 MB.", "Done.", "no wait, never mind, leave it as it was"), ""),
        (
            ("We use Kotlin because the team insists.", "Ok.", "Kidding, we stay with Go for the backend"),
            "Go",
        ),
        (
            ("How to deploy?", "I suggest we deploy with Kubernetes on GKE.", "No, too expensive for us."),
            "",
        ),
        (
            ("let's use redis as the broker", "ok, installing", "hmm no, drop redis, postgres is enough"),
            "redis",
        ),
        (("The max batch size must be 50.", "ok", "make it 80"), "50. – make it 80"),
        (("The demo is on Thursday.", "Noted.", "actually Friday"), "Thursday. – actually Friday"),
        (("We deploy on Fridays.", "Noted.", "no, on Mondays"), "Fridays. – no, on Mondays"),
        (("Wir nehmen Hetzner als Hoster.", "ok", "doch lieber IONOS"), "Hoster. – doch lieber IONOS"),
        (("Which queue?", "We should use RabbitMQ 3.13 for the job queue.", "I'd rather not."), ""),
        (("The SMTP port is 578.", "Noted. Which host?", "oops, 587 i mean"), "578. – oops, 587 i mean"),
        (("The SMTP port is 578.", "Noted.", "ne quatsch, 587"), "578. – ne quatsch, 587"),
        (("The SMTP port is 578.", "Noted.", "587, not 578"), "578. – 587, not 578"),
        (("Der Timeout für fiskaly ist 3 Sekunden.", "Ok.", "Ich meinte 5 Sekunden."), "3 Sekunden. – Ich"),
        (("for pdf previews use pdfium", "Ok.", "hm i changed my mind. use mupdf"), "pdfium – hm i changed"),
        (("für die pdfs nimm pdfium", "Ok.", "habs mir anders überlegt, nimm mupdf"), "pdfium – habs mir"),
        (
            ("The limit is 400 requests.", "400 it is.", "That's outdated, it's 700."),
            "400 requests. – That's",
        ),
        (("was kostet das?", "Laut README 800 Euro im Monat.", "das ist veraltet, 1200"), "Monat. – das"),
        (
            ("die api erlaubt 800 anfragen", "Ok.", "veraltet, seit montag sind es 1200"),
            "anfragen – veraltet",
        ),
        (("the workers are 4", "Ok.", "make it 3, one core is for the scanner"), "are 4 – make it 3"),
        (("das limit ist 800", "Ok.", "inzwischen 1200"), "800 – inzwischen 1200"),
        (("release is thursday", "Ok.", "no wait, friday"), "release is thursday – no wait, friday"),
        (("Partners have 3000.", "Set.", "sorry, 6000, they renegotiated"), "Partners have 3000. – sorry"),
        (("the ttl is 30 days", "Ok, 30.", "er, 90. stripe retries for longer"), "30 days – er, 90."),
        (("staging queue is hooks-stg-v2", "Ok.", "scratch the v2"), "hooks-stg-v2 – scratch the v2"),
        (("Die Session läuft 30 Minuten.", "Ok.", "30 ist der IT zu lang, 20."), "Minuten. – 30 ist"),
        (("smtp port is 578", "Notiert. Soll ich TLS erzwingen?", "nope 587"), "578 – nope 587"),
        (("smtp port is 578", "Ok.", "587*"), "578 – 587*"),
        (("smtp port is 578", "Ok.", "mein fehler, 587"), "578 – mein fehler, 587"),
        (("use pdfium for the previews", "Ok. Soll ich anfangen?", "doch lieber mupdf"), "previews – doch"),
        (("use pdfium for the previews", "Ok.", "use mupdf instead"), "previews – use mupdf instead"),
        (("use pdfium for the previews", "Ok.", "actually let's use mupdf"), "previews – actually let's"),
        (("the path is /etc/a.yaml", "Ok.", "nvm, its /etc/b.yaml"), "/etc/a.yaml – nvm, its"),
        (
            ("sync is every 15 min", "Added a 15 minute timer to `a.py`.", "actually 5 min"),
            "15 min – actually 5",
        ),
    ],
)
def test_a_correction_stands_with_what_it_corrects_and_a_refused_proposal_goes(
    turns: tuple[str, str, str], kept: str
) -> None:
    roles = ("person", "assistant", "person")
    found = texts(extract(talk(*zip(roles, turns, strict=True), ("assistant", "Ok."))))
    assert [kept in text for text in found] == [True] * bool(kept), found


@pytest.mark.parametrize(
    "said",
    [
        "Alice's phone extension is 4417. Wait, no, 4471.",
        "Our new office is in Gohlis. No, I meant Plagwitz.",
        "The vet gives Momo 2 ml of gabapentin before car rides. Wait, 0.2 ml, not 2 ml!",
        "Their contact at Bergmann is Ms. Okafor. Ah wait, Okafor left; it is Mr. Lindner now.",
        "Der Vertrag mit Krause läuft bis 30. Juni 2027. Ich meinte 30. Juli 2027.",
        "Kater Momo bekommt 2 ml Gabapentin vor Autofahrten. Moment, 0,2 ml, nicht 2 ml!",
        "The two failing tests are test_vat and test_refund. Jonas will fix them by Wednesday, not me.",
        "Emma kommt in die Kita Regenbogen. Sie ist allergisch gegen Haselnüsse.",
        "We move the database to Scaleway in Paris. Their quote was 64 euros a month.",
        "The demo is on Thursday. Actually, Friday.",
        "Blower part came early, Dale put it in this morning. Total was 495 not 520.",
        "set the timeout to 30 seconds. wait no, make it 60 seconds",
        "nimm Port 8080. ach nein, doch lieber 9090",
        "poll interval 2 sec is too slow, make it 500ms. wait no, use LISTEN/NOTIFY instead of polling",
        "会議は12月3日です。間違えた、12月4日です。",
        "ポートは 8080 です。いや、9090 です。",
        "La réunion est mardi. En fait non, mercredi.",
        "La quota è 48 euro. Anzi no, 52.",
        "O deploy é na quinta. Aliás, na sexta.",
    ],
)
def test_a_sentence_that_corrects_the_one_before_or_leans_on_it_stays_with_it(said: str) -> None:
    assert texts(extract(talk(("person", said), ("assistant", "OK.")))) == [said]


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        (("The notebooks run in papermill.", "please don't run them by hand"), 0),
        (("`compare.cmd` bills last month with both programs.", "Run that after every change."), 0),
        (("the backups have to last longer", "How long should it be then?", "30 days"), 0),
        (("sicherungen müssen länger da sein", "Wie viele Tage sollen es werden?", "30"), 0),
        (("the backups have to last longer", "How many days for the nightly ones?", "30 days"), 1),
        (("We use papermill.", "always use that script for reports, never the old one"), 1),
        (("We use papermill.", "I think that by June the report is in German"), 1),
    ],
)
def test_what_points_back_is_kept_behind_what_it_is_about(turns: tuple[str, ...], kept: int) -> None:
    """All turns are in one fact, or (1) the last ones stand without the first."""
    roles = ("assistant", "person") if len(turns) == 2 else ("person", "assistant", "person")
    found = texts(extract(talk(*zip(roles, turns, strict=True), ("assistant", "Done."))))
    with_last = next(text for text in found if turns[-1] in text)
    assert all(turn.rstrip(".") in with_last for turn in turns[kept:]) and (turns[0] in with_last) == (
        not kept
    )


@pytest.mark.parametrize("said", ["wie lang heben wir die stände auf", "was brauche ich für den antrag"])
def test_a_question_without_its_mark_is_none_to_keep(said: str) -> None:
    assert extract(talk(("person", said), ("assistant", "Das steht im Vertrag."))) == []


@pytest.mark.parametrize(
    "said, kept",
    [
        ("Tengo dos hijos, Ana y Luis. No fumo. No me gusta el café.", 3),
        ("We deploy from main with Jenkins. No deploys on Fridays, ever.", 2),
        ("The build was slow again today. No meetings before 10 for me, please.", 1),
        ("The coffee machine is broken again. I told them we use Postgres 16.", 1),
        ("We use Postgres 16. No, problem solved by the way.", 1),
        ("The venue is the Grand Hotel. Actually we need parking too.", 1),
    ],
)
def test_a_sentence_of_its_own_is_not_joined(said: str, kept: int) -> None:
    found = texts(extract(talk(("person", said), ("assistant", "OK."))))
    assert len(found) == kept and all(text.count(". ") == 0 for text in found)


@pytest.mark.parametrize(
    "later",
    [
        "wait, 2 tests fail now",
        "Not bad, but on 12 May the launch costs more.",
        "Not today, but I need the launch slides.",
        "no problem",
        "actually thanks, that is all",
        "make it prettier",
        "no lets paint the launch pad red first",
        "actually, run the tests first",
        "its not that i dislike 3 launches, but 2 would be easier",
        "quatsch machen wir am 4 May genug",
        "i meant to ask whether the 2 launch tests are green",
        "oops, 2 tests are red now",
        "I changed my mind about lunch",
        "did I say I changed my mind? use the other launch branch",
        "sorry, I have to leave at 5",
        "that's 5",
        "no longer needed, 2 tickets are closed",
        "now 2 tests fail",
        "do that instead",
        "actually switch to main",
    ],
)
def test_what_corrects_nothing_leaves_the_statement_alone(later: str) -> None:
    turns = (("person", "The launch is on 3 May."), ("assistant", "OK."), ("person", later))
    assert "The launch is on 3 May." in texts(extract(talk(*turns, ("assistant", "OK."))))


@pytest.mark.parametrize("said", ["do it in SQLite instead", "Do that later, I want to see the logs first"])
def test_another_wish_confirms_no_proposal(said: str) -> None:
    proposal = "I suggest we use Redis for the cache, and keep sessions in Postgres."
    assert proposal not in texts(assistant(proposal, ("person", said)))


@pytest.mark.parametrize(
    "said, later",
    [
        ("The meeting is on Tuesday.", "Nope, nothing on Friday either"),
        ("The demo is on Friday.", "Let's drop the demo music."),
        ("My brother Tom lives in Kyiv.", "Actually happy there."),
        ("The rent is 900 euros.", "Actually cheap."),
        ("My daughter is 7 years old.", "Actually very tall."),
    ],
)
def test_a_remark_corrects_no_value(said: str, later: str) -> None:
    assert said in texts(extract(talk(("person", said), ("assistant", "OK."), ("person", later))))
    assert said in texts(person(f"{said} {later}"))


def test_what_a_person_asks_to_remember_is_kept() -> None:
    said = "can you remember my flight is on 4 December"
    assert texts(person(said)) == [said]


def test_a_corrected_day_is_the_day_of_the_event() -> None:
    (found,) = extract(
        talk(("person", "The meeting with the lawyer is on 4 March 2026. Actually, make that 5 March 2026."))
    )
    assert found.when == "2026-03-05"


@pytest.mark.parametrize(
    "asked, said, kept",
    [
        ("Should I format with ruff or with black?", "ruff. Black is not an option.", True),
        ("Which formatter should I use?", "ruff. Black is not an option.", True),
        ("Soll ich mit Tabs oder Leerzeichen einrücken?", "Leerzeichen, bitte.", True),
        ("Should I delete the old staging server?", "Not yet! Keep it until the audit is over.", True),
        ("Orders overlap with the labels, shall I drop them?", "yes drop them, it's leakage basically", True),
        ("I would enable two-factor login for all admins.", "yes, but only for admins, not customers", True),
        ("Should the menu change weekly?", "every two weeks, on wednesdays", True),
        ("Shall we merge it first?", "on monday please", False),
        ("Should I run the tests now or later?", "later please, I'm in a meeting", False),
        ("What should I do next?", "the migration of the users table", False),
        ("Shall I commit this?", "yes, but only the two files in src", False),
        ("I have fixed the header padding.", "good, but now the footer looks ugly", False),
        ("Anything else?", "No, that's all until tomorrow, thank you very much", False),
        ("Which file should I open?", "the second one", False),
        ("Should I rebase or merge?", "merge", False),
    ],
)
def test_a_choice_or_a_limited_yes_is_kept_with_its_question(asked: str, said: str, kept: bool) -> None:
    found = texts(extract(talk(("assistant", asked), ("person", said), ("assistant", "OK."))))
    assert found == ([f"{asked} – {said}"] if kept else [])


@pytest.mark.parametrize(
    "offered, said, kept",
    [
        ("Options:\n1. use Postgres\n2. use a file for each", "2", "use a file for each – 2"),
        ("How do we fill it?\n- **A)** zeros\n- **B)** the median", "b please", "the median – b please"),
        ("(a) lose one, (b) lose half of them, (c) wait", "a and c", "lose one; wait – a and c"),
        ("1. retry\n2. give up\n\nHow many retries should it be?", "2", "How many retries should it be? – 2"),
        ("I did this:\n1. read the log\n2. ran the tests", "ok, run 3 more", ""),
    ],
)
def test_what_is_chosen_by_its_number_is_kept_in_words(offered: str, said: str, kept: str) -> None:
    found = texts(extract(talk(("assistant", offered), ("person", said), ("assistant", "OK."))))
    assert [one.removeprefix("How do we fill it? ") for one in found] == ([kept] if kept else [])


@pytest.mark.parametrize(
    "said, answer, kept",
    [
        ("they call mondays, so weekly at 5", "Changed the schedule to weekly, mondays at 5.", True),
        ("make both 2024", "Done: both use seed 2024, and the README says model v3.", True),
        (
            "bergen direct, no stavanger",
            "So the return is by Bergen, and Stavanger falls away.",
            True,
        ),
        ("bergen direct, no stavanger", "So I'll look at the ferry from Bergen tomorrow morning.", False),
        ("what about bergen?", "So how long should the stay in Bergen be?", False),
        ("go on", "So the return is by Bergen, and Stavanger falls away.", False),
    ],
)
def test_what_the_agent_says_again_in_its_words_is_kept(said: str, answer: str, kept: bool) -> None:
    found = texts(extract(talk(("person", said), ("assistant", answer), ("person", "thx"))))
    assert (answer in found) == kept


def test_of_two_that_say_the_same_the_one_with_more_numbers_is_kept() -> None:
    full = "From the logs: 1,284 failed checkouts between 02:17 and 02:51 UTC."
    later = 'Draft: "Between 02:17 and 02:51 UTC some checkouts failed because of the network."'
    found = texts(extract(talk(("assistant", full), ("person", "ok draft it"), ("assistant", later))))
    assert any("1,284" in one for one in found)


def test_the_line_above_a_list_is_no_fact_of_its_own() -> None:
    lines = ("## Pricing", "", "**Entry:**", "- one seat", "", "**Why:**", "- costs", "", "**To do:**", "- x")
    assert not any(fact.text.endswith(":") for fact in _facts_of(*lines))


def test_a_person_who_talks_is_believed_sooner_than_one_whose_agent_works() -> None:
    said = ("person", "flam camping full in july they wrote me")
    chat = [("person", "hm let me think about it"), ("assistant", "Sure.")] * 20
    work = [("person", "go on"), ("tool", "Bash make: ok"), ("tool", "Read a.py: ok")] * 20
    assert texts(extract(talk(*chat, said))) == [said[1]]
    assert not texts(extract(talk(*work, said)))


@pytest.mark.parametrize(
    "pasted",
    [
        "NAME            READY   STATUS             RESTARTS\nshop-7d9f-2xk   0/1     CrashLoopBackOff   11",
        "Warning  Failed  12m  cert-manager  The request failed and will be retried because of the order",
        "[2026-02-11, 03:14:07 UTC] {taskinstance.py:1937} ERROR - Task failed with exception",
        "Fatal Exception: java.lang.IllegalStateException: Fragment Plant is not attached to a context.",
        "e: file:///builds/app/WateringTest.kt:41:9 Unresolved reference: run\nBuild failed with 2 errors.",
    ],
)
def test_pasted_output_is_not_what_the_person_says(pasted: str) -> None:
    assert texts(person(f"here is what I got\n\n{pasted}\n\nthe cluster is prod-eu2, by the way")) == [
        "the cluster is prod-eu2, by the way"
    ]


def test_what_is_so_instead_of_a_wrong_claim_is_kept() -> None:
    claim = "The pool is limited to 10 and that is why requests time out."
    said = "That's wrong. The timeouts come from the missing index on stock_moves.sku."
    found = texts(extract(talk(("assistant", claim), ("person", said), ("assistant", "Right."))))
    assert found == ["The timeouts come from the missing index on stock_moves.sku."]


def test_a_decision_is_kept_and_weighing_it_is_not() -> None:
    turns = (
        ("person", "Ich überlege noch, ob wir das Sofa mitnehmen."),
        ("assistant", "Das Sofa hat Platz."),
        ("person", "Ok, das Sofa kommt doch mit."),
    )
    assert texts(extract(talk(*turns))) == ["Ok, das Sofa kommt doch mit."]


def test_what_the_person_said_stays_when_the_agent_admits_it() -> None:
    said = "The API supports pagination with cursor tokens in version 3."
    turns = (
        ("assistant", "It does not."),
        ("person", said),
        ("assistant", "I was wrong: the API supports pagination."),
    )
    assert said in texts(extract(talk(*turns)))


@pytest.mark.parametrize(
    "said",
    [
        "sono stanchissima, oggi turno infinito",
        "che bello, sono proprio contenta di questo",
        "aggiungi una riga alla fine del testo",
        "non so ancora se ci vado o no",
        "va bene, facciamo come dici tu allora",
        "wat een drukke dag vandaag, ik ben moe",
        "maak er een lijstje van met bolletjes",
        "ik snap niet helemaal wat je bedoelt",
        "misschien morgen, ik kijk nog even",
        "oké top, dan doen we dat zo",
    ],
)
def test_small_talk_and_errands_in_italian_and_dutch_are_not_kept(said: str) -> None:
    assert not person(said)


@pytest.mark.parametrize(
    "said",
    [
        "tom prefers the wall sage green, i prefer white. in the end we decided on green",
        "davide preferisce la parete verde, io bianca. alla fine abbiamo deciso verde",
        "ich wollte die blaue, Tom die rote. am Ende haben wir die rote genommen.",
        "Truus wil naar Texel, ik naar Breda. uiteindelijk hebben we Texel gekozen",
    ],
)
def test_what_was_weighed_is_kept_with_what_was_decided(said: str) -> None:
    assert texts(person(said)) == [said]
    assert not person("In the end it took three hours")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("did I tell you the school has a new number? it's 030 271 99 05 now", True),
        ("ti ho detto che il numero della scuola è cambiato? adesso è 030 271 99 05", True),
        ("heb ik je verteld dat Truus verhuist? ze gaat op 3 mei naar Zwolle", True),
        ("did I tell you about the bug on port 8080?", False),
        ("ti ho detto del problema con il file?", False),
    ],
)
def test_what_is_told_by_asking_whether_it_was_told_is_kept(said: str, kept: bool) -> None:
    assert texts(person(said)) == ([said] if kept else [])


def test_thanks_of_a_named_speaker_are_not_kept() -> None:
    assert not person("Marta Gil: Gracias a vosotros, de verdad, muchas gracias por todo.")


def test_an_agent_that_was_wrong_takes_its_statement_back() -> None:
    wrong = "The API does not support pagination."
    right = "I was wrong: the API supports pagination with cursor tokens, up to 100 items."
    turns = (
        ("person", "Any limits?"),
        ("assistant", wrong),
        ("person", "check again please"),
        ("assistant", right),
    )
    assert wrong in texts(extract(talk(*turns[:3])))
    assert wrong not in texts(extract(talk(*turns)))


def test_an_item_of_a_list_of_rejected_things_takes_its_lead_along() -> None:
    said = "We rejected these:\n1. Use Kafka for events with 3 brokers\n2. Move to RDS\nWe keep:\n1. Postgres"
    assert texts(person(said)) == ["We rejected these: Use Kafka for events with 3 brokers"]


def test_a_sentence_that_leans_on_the_one_before_comes_with_it() -> None:
    said = "I prefer small modules with one job. They are easier to test because nothing is shared."
    assert texts(person(said)) == [said]
    apart = "I prefer small modules with one job. My sister Jana is allergic to peanuts."
    assert len(person(apart)) == 2


@pytest.mark.parametrize(
    "said",
    [
        "the roster needs to be published by the 18th. no wait, that's a friday, so the 17th, thursday",
        "El plazo para anunciarlo acaba el viernes. No, perdona, son cinco días, acaba el lunes 2 de marzo",
        "Les étiquettes doivent partir le 3 avril. Euh non pardon le 2, le 3 c'est le vendredi saint",
        "Der Termin ist am Montag. Nein, warte, am Dienstag um 15 Uhr beim Zahnarzt in Kiel.",
    ],
)
def test_what_is_put_right_in_the_same_breath_is_one_statement(said: str) -> None:
    assert texts(person(said)) == [said]


def test_short_items_with_a_value_each_are_kept_as_one_and_other_short_items_are_not() -> None:
    ports = "Ports on the host:\n\n- web 8088\n- broker 5671\n- login 8443"
    assert texts(assistant(ports)) == ["Ports on the host: web 8088; broker 5671; login 8443"]
    assert assistant("Files read:\n\n- compose.yml\n- the lock file\n- both Dockerfiles") == []


def test_steps_of_a_numbered_list_are_one_thought_bullets_are_not() -> None:
    steps = ["The proxy requires a length.", "The client can't send one.", "The upload fails if both hold."]
    numbered = "\n".join(f"{n}. {step}" for n, step in enumerate(steps, 1))
    (one,) = assistant(numbered)
    assert one.text == " ".join(steps)
    assert locate(one.quote, [numbered]) == 0
    assert texts(assistant("\n".join(f"- {step}" for step in steps))) == steps


def test_points_of_a_numbered_list_with_a_number_or_name_each_are_apart() -> None:
    points = [
        "La réception est reportée au 26 février.",
        "M. Rivet commence le 11 mai.",
        "Le coût est de 900 €.",
    ]
    (chunk,) = split_text("# CR\n\n" + "\n".join(f"{n}. {point}" for n, point in enumerate(points, 1)))
    assert [one.text for one in extract_without_model(chunk, TextContext(FRIDAY)).facts] == points


def test_fields_with_bold_labels_are_read_as_fields() -> None:
    text = (
        "# Minutes 12\n\n**Site :** Residence Les Tilleuls, Angers\n**Date :** Thursday 5 March 2026\n"
        "**Present :** Ann Marchand, Karim Benali\n\nThe slab of the third floor was poured on 2 March."
    )
    (chunk,) = split_text(text)
    assert [(one.text, one.when) for one in extract_without_model(chunk, TextContext(FRIDAY)).facts] == [
        ("Site : Residence Les Tilleuls, Angers", None),
        ("Minutes 12 – Present : Ann Marchand, Karim Benali", None),
        ("The slab of the third floor was poured on 2 March.", "2026-03-02"),
    ]


def test_a_message_with_a_number_is_kept_beside_those_worth_more() -> None:
    said = (
        "We decided to rent a pump at Loxam", "We chose Marazzi for the hall", "I prefer to meet at 9:30",
        "Ann Berg is allergic to 2 glues", "The deposit of 900 euros is due on 5 May",
        "Axa comes on Monday", "We never pour below 3 degrees", "Tom replaces Lea until 24 April",
    )  # fmt: skip
    worthy = "\n".join(f"[18/03/2026 07:4{n}:10] Ann: {one}" for n, one in enumerate(said))
    (chunk,) = split_text(f"{worthy}\n[18/03/2026 18:40:12] Yves: Coulage fini, 34 m3\n")
    texts = [one.text for one in extract_without_model(chunk, TextContext(FRIDAY)).facts]
    assert texts[-1] == "Yves: Coulage fini, 34 m3"


def test_the_end_of_a_letter_is_no_fact() -> None:
    ends = (
        "Bien cordialement, Nadège Poirier.", "Kind regards, Ann Berg.", "Mit freundlichen Grüßen, Eva Roth.",
        "Je vous prie d'agréer, Madame, Monsieur, mes salutations distinguées.",
    )  # fmt: skip
    for end in ends:
        (chunk,) = split_text(f"The boiler costs 900 euros.\n\nIt is red.\n\nIt is new.\n\n{end}\n")
        found = extract_without_model(chunk, TextContext(FRIDAY)).facts
        assert [one.text for one in found] == ["The boiler costs 900 euros."], end


def test_what_follows_a_slash_command_is_read_without_it() -> None:
    assert texts(person("/remember Use uv for everything, never pip.")) == [
        "Use uv for everything, never pip."
    ]
    assert texts(person("/clear")) == []


@pytest.mark.parametrize(
    ("asked", "answered", "kept"),
    [
        ("Fine. Which port does staging use?", "6543", "Which port does staging use? – 6543"),
        ("Oh no. The June edition?", "jun 15", "Oh no. The June edition? – jun 15"),
        ("Save system: JSON or Resource files?", "json. those can execute code",
         "Save system: JSON or Resource files? – json. those can execute code"),
        ("Sehr gut. Welcher Kontenrahmen?", "skr03", "Sehr gut. Welcher Kontenrahmen? – skr03"),
        ("Prima. Welke kleur krijgt de knop?", "oranje", "Welke kleur krijgt de knop? – oranje"),
        ("With the thinner tile you would gain 2 mm.", "8mm tile then",
         "With the thinner tile you would gain 2 mm. – 8mm tile then"),
        ("That brings the total to 8,400.", "the electrician is missing, he quotes 1350",
         "the electrician is missing, he quotes 1350"),
        ("Which port does staging use? The config has none.", "6543",
         "Which port does staging use? – 6543"),
        ("ステージングのポートは何番ですか？", "6543", "ステージングのポートは何番ですか？ – 6543"),
        ("Anything else on the list?", "oskar raised the budget to 2600", "oskar raised the budget to 2600"),
    ],
)  # fmt: skip
def test_a_short_answer_is_kept_with_its_question(asked: str, answered: str, kept: str) -> None:
    (candidate,) = extract(talk(("assistant", asked), ("person", answered)))
    assert (candidate.text, candidate.quote, candidate.who) == (kept, answered, "person")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("Which port does staging use?", "no idea"),
        ("Which port does staging use?", "which one is free?"),
        ("Shall I restart the server now?", "yes please"),
        ("Want me to use port 6543 or another one?", "ok"),
        ("What is the password of the staging database?", "wintergreen 22"),
        ("Which port does staging use?", "[redacted: password]"),
        ("Which port does staging use?", "6543, pw hunter22"),
        ("I need the database password. Which one do you use?", "wintergreen22"),
        ("What's the door code?", "wintergreen22"),
        ("What is the encryption key?", "wintergreen22"),
        ("Wie lautet der API-Schlüssel?", "wintergreen22"),
        ("Quelle est la clé API ?", "wintergreen22"),
        ("¿Cuáles son las credenciales?", "wintergreen22"),
        ("Wat is het wachtwoord van de wifi?", "wintergreen22"),
        ("Qual é a palavra-passe?", "wintergreen22"),
        ("Qual è la chiave API?", "wintergreen22"),
        ("Qual é a chave da API?", "wintergreen22"),
        ("トークンは何ですか？", "wintergreen22"),
        ("Which port does staging use?", "not sure"),
        ("Which port does staging use?", "scratch that"),
        ("Which port does staging use?", "hold on"),
        ("Which port does staging use?", "b"),
        ("Which port does staging use?", "2026-11-20 09:31:07 ERROR pool timeout after 30s"),
        ("Which port does staging use?", "TypeError: x is undefined at app.ts:12:3"),
        ("How does that look?", "too dark"),
        ("I have added the column.", "nice"),
        ("The tests are green.", "now write the 3 docs"),
        ("Which file should I start with?", "run the tests first"),
        ("Want to test more of it, or move on to the next step?", "wow, you are a monster"),
    ],
)
def test_what_answers_nothing_is_not_kept(asked: str, answered: str) -> None:
    assert extract(talk(("assistant", asked), ("person", answered))) == []


def test_a_question_is_answered_once_and_a_new_answer_replaces_the_old() -> None:
    asked = ("assistant", "Which port does staging use?")
    found = extract(talk(asked, ("person", "6543"), ("person", "7"), asked, ("person", "6544 now")))
    assert [(one.text, one.was) for one in found] == [
        ("Which port does staging use? – 6544 now", "Which port does staging use? – 6543")
    ]


def test_the_same_answer_to_two_questions_is_kept_twice() -> None:
    asked = [("assistant", f"Which port does {server} use?") for server in ("staging", "production")]
    found = extract(talk(asked[0], ("person", "6543"), asked[1], ("person", "6543")))
    assert texts(found) == [f"{question} – 6543" for _, question in asked]


def test_a_standing_rule_beside_an_answer_is_a_statement_of_its_own() -> None:
    asked = "What is the budget for hosting?"
    found = extract(talk(("assistant", asked), ("person", "80 euros a month. Never deploy on a Friday.")))
    assert texts(found) == [f"{asked} – 80 euros a month.", "Never deploy on a Friday."]
    found = extract(talk(("assistant", asked), ("person", "80 euros. It must never be more.")))
    assert texts(found) == [f"{asked} – 80 euros. It must never be more."]


@pytest.mark.parametrize(
    "said, kept",
    [
        ("Hi! I'm Priya. I moved from Delhi to Lisbon in May and work as a nurse.", "I'm Priya."),
        ("Hallo, ich bin Jonas.", "Hallo, ich bin Jonas."),
        ("Bonjour, je m'appelle Chloé.", "Bonjour, je m'appelle Chloé."),
        ("Go-live is December 2nd.", "Go-live is December 2nd."),
        ("profile name is WHS_PROD", "profile name is WHS_PROD"),
        ("logs go to loki, label app=thumbs", "logs go to loki, label app=thumbs"),
        ('Der Realm heißt "intern".', 'Der Realm heißt "intern".'),
        ("My goal is to give them a home.", ""),
        ("http port 8300, metrics 9300", "http port 8300, metrics 9300"),
        ("the error is 404", ""),
        ("coverage is 87%", ""),
        ("tests 3 failed, lint 2", ""),
        ("stimmt. dann bleibts bei postgres", "dann bleibts bei postgres"),
        ("right, then we stay with postgres", "right, then we stay with postgres"),
        ("ok so postgres it is", "ok so postgres it is"),
        ("hm. katja is not here. ok take postgres queue, no celery", "ok take postgres queue, no celery"),
        ("Hi, I'm Mark.", "Hi, I'm Mark."),
        ("Call me Tom.", "Call me Tom."),
        ("Hi, I'm sorry for the delay.", ""),
        ("Call me later.", ""),
        ("Call me when the build is done", ""),
        ("call me back tomorrow", ""),
        ("call me an ambulance if the build breaks again", ""),
        ("My name is missing from the list", ""),
        ("Me llamo luego", ""),
        ("Sono Stanco.", ""),
        ("I'm In.", ""),
        ("I am Done, thanks", ""),
        ("Ok, take the bus", ""),
        ("ok, pick the second option", ""),
        ("So it stays red, same error as Kubectl", ""),
        ("right, it keep crashing in Xcode", ""),
        ("Today is Friday", ""),
        ("It is Monday", ""),
        ("Tomorrow is Saturday", ""),
        ("Lunch is ready.", ""),
        ("sollen wir redis oder postgres für die queue nehmen", ""),
    ],
)
def test_names_days_and_decisions_are_kept_in_a_few_words(said: str, kept: str) -> None:
    found = texts(extract(talk(("person", said), ("assistant", "ok"))))
    assert (kept in found) if kept else not found


@pytest.mark.parametrize(
    "said, kept",
    [
        ("No, PostgreSQL.", True),
        ("No, thanks.", False),
        ("No, not yet.", False),
        ("No, SyntaxError in main.py", False),
    ],
)
def test_a_no_with_another_value_is_an_answer(said: str, kept: bool) -> None:
    question = "Is MySQL fine for the staging database?"
    found = texts(extract(talk(("assistant", question), ("person", said), ("assistant", "ok"))))
    assert found == [f"{question} – {said}"] * kept


@pytest.mark.parametrize(
    "guess, answer, reply, kept",
    [
        (
            "ich glaub der memory leak im worker kommt von sqlalchemy sessions",
            "Es sind nicht die Sessions: tracemalloc zeigt 412 MiB in preview.py:31.",
            "ach krass, also nicht sqlalchemy",
            False,
        ),
        (
            "The leak comes from the SQLAlchemy sessions.",
            "I checked: it is not the sessions. The lru_cache in preview.py keeps 412 images.",
            "ah ok",
            False,
        ),
        (
            "The leak comes from the SQLAlchemy sessions.",
            "The cache is large.",
            "so it's not SQLAlchemy",
            False,
        ),
        ("The leak comes from the SQLAlchemy sessions.", "I looked, it is not the worker.", "ok", True),
        ("I think the crash is caused by the Redis client.", "Is it not Redis that crashes?", "it is", True),
        ("We use Postgres for the shop, not MySQL.", "Right, it is not MySQL.", "ok", True),
        (
            "My sister Anna probably moves to Berlin in May because of her job at Bosch.",
            "Berlin isn't cheap: the rent is not low in Berlin.",
            "ok",
            True,
        ),
        (
            "I think Anna lives in Berlin and probably works at Bosch.",
            "Noted. This is not stored in Berlin, by the way.",
            "ok",
            True,
        ),
        (
            "The delay came from the customs office in Hamburg, the shipment arrives on 3 May.",
            "It isn't customs in your calendar yet, I added 3 May.",
            "ok",
            True,
        ),
        (
            "The fire was caused by the old heater in room 3, the insurer pays 4000 euros.",
            "The insurer does not list the old heater as covered.",
            "ok",
            True,
        ),
        (
            "I think Lena's school is in Linz.",
            "It is in Linz. The school isn't a private school, so it's free.",
            "ok",
            True,
        ),
        (
            "I think the outage came from the Redis cache in Frankfurt.",
            "The outage was not from the Redis replica, but the Redis cache in Frankfurt is the cause.",
            "ok",
            True,
        ),
    ],
)
def test_a_refuted_guess_is_not_kept(guess: str, answer: str, reply: str, kept: bool) -> None:
    found = texts(extract(talk(("person", guess), ("assistant", answer), ("person", reply))))
    assert (guess in found) == kept
    assert any("412" in text for text in found) == ("412" in answer)


@pytest.mark.parametrize(
    "asked",
    [
        "which python version runs on the server",
        "what port does staging listen on",
        "when does the contract with Hetzner end",
        "who approves invoices above 5000 euros",
        "wann läuft das Zertifikat von shop.example.com ab",
        "quand expire le certificat de shop.example.com",
        "cuándo vence el contrato con Hetzner",
        "wo ist der Schlüssel vom Büro",
        "should we use redis or postgres for the queue",
        "is the demo on Friday",
    ],
)
def test_a_question_without_its_mark_is_no_statement(asked: str) -> None:
    assert not texts(extract(talk(("person", asked), ("assistant", "I don't know."), ("person", "thanks"))))


@pytest.mark.parametrize(
    "said",
    [
        "when the contract ends in May we move to Scaleway",
        "what I want is a report every Monday",
        "what is missing in the shop is a test for the 19% tax",
        "who wants to come has to register by Friday 5 pm",
        "wie gesagt nehmen wir Postgres 16 statt MySQL",
        "Have you met Peter, he is my boss and lives in Bonn",
        "when Lena is ill Peter takes over the class",
        "When Peter is away Ana is the contact",
        "What Peter said is that the deadline is Friday",
        "what Lena does is teach maths in Graz",
        "Who knows Rust reviews the code",
        "When is the lease up we move to Porto",
        "When is not important, but we move to Lyon",
        "What is more, our office is in Kyiv",
        "Should you need me, I am in Berlin until Friday",
        "is it ok, I booked the hotel Adler for 3 May",
        "do we have a deal, the rent is 900 euros from May",
        "Whose car is red is Peter, my neighbour",
        "Would you please always answer in German",
        "Should the deploy fail on Friday, always roll back to the last tag",
        "Wollen wir nicht vergessen, der Vertrag endet im Mai",
        "Darf man nicht, das Haus steht unter Denkmalschutz",
        "Was ist das Wichtigste, das ist die Sicherheit",
        "Quando termina o contrato mudamos para o Porto",
        "Quando finisce il contratto ci trasferiamo a Torino",
        "Quando chega o verão vamos a Lagos",
        "cuánto me gusta el café solo",
    ],
)
def test_a_statement_may_begin_like_a_question(said: str) -> None:
    assert texts(extract(talk(("person", said), ("assistant", "ok")))) == [said]


def test_a_claim_is_kept_with_the_correction_that_follows_it() -> None:
    found = extract(talk(("assistant", "The server has 8 GB of RAM."), ("person", "No, 16.")))
    assert texts(found) == ["The server has 8 GB of RAM. – No, 16."]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("The schedule has the cron `15 3 * * *`, so it runs at 03:15 UTC.", False),
        ("No, at quarter past three.", False),
        ("Yes, at 02:15 UTC, see line 7 of `crontab`.", True),
    ],
)
def test_what_a_person_takes_for_so_is_not_kept_if_the_agent_says_otherwise(answer: str, kept: bool) -> None:
    """ "The job runs at 02:15, right?" stayed a fact beside the answer that it runs at 03:15."""
    found = texts(extract(talk(("person", "the job runs at 02:15, right?"), ("assistant", answer))))
    assert ("the job runs at 02:15, right?" in found) == kept


def test_values_in_an_agents_list_are_one_statement_with_the_file_they_are_in() -> None:
    """Of a list of settings only the item with a sentence in it was kept, without the name of the file."""
    items = (
        "memory limit: 512Mi → 1Gi", "`GOMEMLIMIT=900MiB`", "`BATCH_MAX=2000`",
        "`DB_MAX_CONNS=20` (was unset, so it used the default of 4 × CPUs)",
    )  # fmt: skip
    said = "Done, in `k8s/staging/ingest.yaml`:\n\n" + "\n".join(f"- {item}" for item in items)
    lead = "Done, in `k8s/staging/ingest.yaml`:"
    assert texts(assistant(said)) == [f"{lead} {'; '.join(items[:3])}", f"{lead} {items[3]}"]


def test_settings_are_kept_below_any_line() -> None:
    said = "The config now:\n\n- port: 8080\n- workers: 4\n- log level: debug\n- timeout: 30s"
    assert texts(assistant(said)) == [
        "The config now: port: 8080; workers: 4; log level: debug; timeout: 30s"
    ]


TOPICS = """Topics by now:

| topic | partitions | retention |
|---|---|---|
| `events.raw` | 12 | 72 h |
| `events.dlq` | 3 | 30 days |"""


def test_the_rows_of_a_table_that_answers_a_question_are_kept() -> None:
    """ "How long do we keep the messages?" was answered by a table, of which no fact was kept."""
    asked = ("person", "how long do we keep the kafka messages atm?")
    found = extract(talk(asked, ("assistant", TOPICS)))
    assert texts(found) == [
        "topic: `events.raw`; partitions: 12; retention: 72 h",
        "topic: `events.dlq`; partitions: 3; retention: 30 days",
    ]
    assert found[0].quote == "| `events.raw` | 12 | 72 h |"
    hosts = "| host | port |\n|---|---|\n| web-1 | 80 |\n| web-2 | 81 |"
    ports = extract(talk(("person", "which ports do the hosts have?"), ("assistant", hosts)))
    assert texts(ports) == ["host: web-1; port: 80", "host: web-2; port: 81"]
    assert not extract(talk(("person", "fix the dashboard"), ("assistant", TOPICS)))
    assert not extract(talk(asked, ("assistant", f"{TOPICS}\n| `audit` | a few | by hand |")))


def test_what_an_agent_offers_to_choose_from_is_not_kept() -> None:
    offers = (
        "**Option A**: raise the limit to 1Gi and set `GOMEMLIMIT=900MiB`.",
        "Proposal:\n\n1. Poll every 30 seconds.\n2. Scale down only after 10 minutes below target.",
    )
    for offer in offers:
        assert not assistant(offer, ("person", "ok do both, but with 800MiB")), offer


def test_a_phrase_with_it_leans_on_nothing() -> None:
    """ "INFRA-2231 tracks the update. – Dana can't make it tomorrow, …" was one fact."""
    said = "Dana can't make it tomorrow, Oyelaran reviews the plans from now on"
    found = extract(talk(("assistant", "INFRA-2231 tracks the JVM update."), ("person", said)))
    assert texts(found) == [said]


def test_a_short_turn_that_repeats_the_agents_number_is_no_remark() -> None:
    """ "ah ok 3:15 then. good" was a fact of its own."""
    told = ("assistant", "The cron is `15 3 * * *`, so it runs at 3:15 UTC.")
    assert not extract(talk(told, ("person", "ah ok 3:15 then. good")))[1:]
    tile = ("assistant", "A thinner tile, 8 mm instead of 10, would give you 2 mm.")
    assert texts(extract(talk(tile, ("person", "8mm tile then"))))[-1].endswith("– 8mm tile then")


def test_what_the_agent_does_not_have_is_answered_by_the_person() -> None:
    """ "Oyelaran has the first half" was kept without the week that was asked about."""
    found = extract(talk(
        ("person", "who's on call that week?"), ("assistant", "I don't have the schedule."),
        ("person", "Oyelaran has the first half, I take the second from the 26th"),
    ))  # fmt: skip
    assert texts(found)[0].startswith("who's on call that week? – Oyelaran has the first half")


def test_an_answer_that_was_wrong_is_not_kept() -> None:
    answered = (("assistant", "Which port does staging use?"), ("person", "6543"))
    denied = (("assistant", "Are you sure?"), ("person", "no, 6543 was wrong"))
    assert texts(extract(talk(*answered))) == ["Which port does staging use? – 6543"]
    assert not any("staging" in one.text for one in extract(talk(*answered, *denied)))


def test_a_question_is_not_taken_along_with_the_statement_before_it() -> None:
    said = "We never commit to main because three teams deploy it. It is what we agreed on, right?"
    assert texts(person(said))[0] == "We never commit to main because three teams deploy it."


# -- what a candidate says -----------------------------------------------------------------------------


def test_a_candidate_says_who_what_and_from_where() -> None:
    (found,) = person("We left Heroku yesterday, because *their price* doubled to **$250** a month. #infra")
    assert found == Candidate(
        text="We left Heroku yesterday, because their price doubled to $250 a month.",
        kind="world",
        who="person",
        when="2026-11-19",
        entities=("Heroku",),
        tags=(),
        quote="We left Heroku yesterday, because *their price* doubled to **$250** a month.",
        turn="t1",
        at=FRIDAY,
        score=found.score,
        reason=found.reason,
    )
    assert "reason" in found.reason
    with pytest.raises(FrozenInstanceError):
        found.text = "Something else."  # type: ignore[misc]


def test_kinds_follow_from_what_the_sentence_was_kept_for() -> None:
    assert person("I prefer tabs over spaces everywhere.")[0].kind == "preference"
    assert person("We shipped the new parser on 12 November.")[0].kind == "world"
    assert (
        assistant("## Summary\n\nRemoved the old parser and its tests from Hetzner.")[0].kind == "experience"
    )


@pytest.mark.parametrize(
    ("said", "when"),
    [
        ("We moved the database to Hetzner yesterday because it was slow.", "2026-11-19"),
        ("We moved the database to Hetzner today because it was slow.", None),
        ("We moved the database between 2026-01-02 and 2026-01-05 because it was slow.", None),
        ("We moved the database on 2026-01-02 because it was slow.", "2026-01-02"),
        ("We moved the database last month because it was slow.", "2026-10"),
        ("We moved the database to Hetzner because it was slow in March.", None),
        ("We moved the database in March because it was slow.", "2026-03"),
    ],
)
def test_when_is_the_one_other_day_or_stretch_that_a_sentence_names(said: str, when: str | None) -> None:
    assert [candidate.when for candidate in person(said)] == [when]


def test_yesterday_is_counted_from_the_speakers_day() -> None:
    late = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    said = talk(("person", "We left Heroku yesterday because it was slow."), at=late)
    assert extract(said)[0].when == "2026-11-19"
    later = Extraction(timezone(timedelta(hours=2)))
    later.add(said[0])
    assert later.best()[0].when == "2026-11-20"
    assert extract(talk(("person", "We left Heroku yesterday because it was slow."), at=None))[0].when is None


def test_hashtags_of_a_sentence_are_its_tags() -> None:
    assert person("We never post names to #deploys, only in #ops. Always cc #legal.")[0].tags == ()
    assert person("I prefer tabs over spaces #style here #go/lint always, not #1 or a#b.")[0].tags == (
        "style",
        "go/lint",
    )


# -- folding and budget --------------------------------------------------------------------------------


def test_what_is_said_again_is_one_candidate_with_a_sighting() -> None:
    found = extract(
        talk(
            ("person", "I prefer tabs over spaces in the Makefile."),
            ("assistant", "Done."),
            ("person", "as I said, i prefer tabs over spaces in every Makefile"),
        )
    )
    assert len(found) == 1
    assert {found[0].turn, *found[0].seen} == {"t1", "t3"}


def test_of_a_misspelt_statement_and_its_correction_the_correction_stays() -> None:
    wrong, right = "always remoev the blue theme", "always remove the blue theme"
    assert texts(extract(talk(("person", wrong), ("assistant", "ok"), ("person", right)))) == [right]
    assert texts(person(f"{wrong}\n*{right}")) == [f"*{right}"]
    assert len(person("My brother Martin likes green tea.\n\nMy brother Marvin likes green tea.")) == 2


def test_what_was_said_in_two_statements_is_merged_with_the_newer_first() -> None:
    """Which one was merged first depended on the hashes of words, and so did what was kept."""
    letter = (
        "Betreff: Herr Aigner\nEr war bei uns in Kur.\n\nHilfsmittel: keine\n\nGestern stürzte er in Bonn."
    )
    found = extract(talk(("person", letter), ("person", "Er war bei uns in Kur.")))
    assert texts(found) == ["Gestern stürzte er in Bonn. – Er war bei uns in Kur."]


def test_how_many_statements_were_left_out_as_near_duplicates_is_told() -> None:
    extraction = Extraction()
    for turn in talk(
        ("person", "I prefer tabs over spaces in the Makefile."),
        ("person", "as I said, i prefer tabs over spaces in every Makefile"),
        ("person", "The release is on 3 May."),
        ("person", "The release is on 10 May."),
        ("person", "The release is on 10 May."),
    ):
        extraction.add(turn)
    assert len(extraction.best()) == 2 and extraction.duplicates == 1


def test_unlike_statements_with_words_in_common_are_not_folded() -> None:
    found = person("I prefer tabs in the Makefile.\n\nI prefer spaces in Python files.")
    assert len(found) == 2
    found = person(
        "The staging server listens on port 8080 because nginx needs it.\n\n"
        "The preview server listens on port 9090 because nginx needs it."
    )
    assert len(found) == 2, "another number, and of something else"
    found = person("The staging server listens on port 8080.\n\nThe staging server listens on port 9090.")
    assert len(found) == 1, "the later number corrects the earlier"


def _dense(count: int, seed: int = 1) -> list[Turn]:
    rng = random.Random(seed)
    syllables = ["ka", "lo", "mi", "re", "tu", "ze", "po", "ni", "da", "vu"]
    word = lambda: "".join(rng.choices(syllables, k=4))  # noqa: E731
    lines = [
        f"We decided to use {word()} instead of {word()} because {word()} requires {word()}."
        for _ in range(count)
    ]
    return talk(*[("person" if n % 2 else "assistant", line) for n, line in enumerate(lines)])


def test_all_that_is_worth_keeping_is_kept_up_to_a_bound_that_says_what_it_left() -> None:
    said = _dense(60)
    assert len(extract(said)) == 60
    bounded = Extraction(most=20)
    for turn in said:
        bounded.add(turn)
    assert len(bounded.best()) == 20 and bounded.left_out == 40


@pytest.mark.slow
def test_memory_is_bounded_by_what_is_kept_and_order_is_the_conversations() -> None:
    extraction = Extraction()
    for turn in _dense(3000):
        extraction.add(turn)
    assert len(extraction._candidates) <= 300
    assert len(extraction._by_term) <= 300 * 12
    order = [int(candidate.turn[1:]) for candidate in extraction.best()]
    assert order == sorted(order) and order


def test_half_a_sentence_is_not_kept() -> None:
    said = "We decided to leave AWS because\n\n- the bill was 900 euros"
    assert not any(each.text.endswith("because") for each in extract([Turn("1", "person", said)]))


# -- one selection -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "The stack is Python 3.12, FastAPI 0.110 and Postgres 16.",
        "log before you raise, always with the order id",
        "Grafana runs at https://grafana.example.org behind the vpn",
        "Our wiki moved to port 8090 last week.",
        "wir nehmen MariaDB 11 und Java 21",
        "le port du serveur de recette est 8444",
        "la base es PostgreSQL 15 con Python 3.12",
        "デプロイは必ず GitHub Actions から",
    ],
)
def test_what_a_project_is_made_of_is_kept(said: str) -> None:
    assert texts(person(said)) == [said]


def test_what_an_answer_says_was_set_up_is_kept_item_by_item_and_short_ones_with_their_lead() -> None:
    said = (
        "Services in this repository:\n\n- Postgres 16\n- Redis 7.2\n- Python 3.12\n\n## Summary\n\n"
        "- Sessions live in Redis under `sess:<id>` and expire after 12 hours\n"
        "- The worker requires a lock because two of them would send every mail twice"
    )
    found = texts(assistant(said, ("person", "ok")))
    assert found[0] == "Services in this repository: Postgres 16; Redis 7.2; Python 3.12"
    assert len(found) == 3


@pytest.mark.parametrize(
    "denial",
    [
        *("still looks the same", "no", "I undid that", "nope, same error"),
        *("immer noch rot", "toujours pareil"),
        *("its not", "nope thats not it", "wasnt it, i checked", "War's nicht, die Breite passt."),
        *("nö das wars nicht", "an der breite liegts nicht", "its not the missing width", "that cant be it"),
        *(
            "not it",
            "wrong",
            "no, already checked",
            "didnt help",
            "das kann es nicht sein",
            "eher nicht, sie passt",
        ),
    ],
)
def test_what_the_person_denies_next_is_not_kept(denial: str) -> None:
    claim = "The broken layout in `grid.css` is caused by the missing width of 640 pixels."
    assert texts(assistant(claim, ("person", "great")))
    assert assistant(claim, ("person", denial)) == []


def test_what_answers_a_question_corrects_nothing_said_before() -> None:
    turns = [("assistant", "Which port does it use?"), ("person", "578"), ("assistant", "Set. Retries?")]
    assert texts(extract(talk(*turns, ("person", "no 5"))))[0] == "Which port does it use? – 578"
    turns = [("person", "use kafka for the queue"), ("assistant", "Ok. Should I use sqlite for the tests?")]
    assert "use kafka for the queue" in texts(extract(talk(*turns, ("person", "no, use duckdb instead"))))


def test_a_question_about_it_is_kept_with_the_sentence_before_it() -> None:
    asked = "I see a cap of 50 open indexes. Do you want it configurable?"
    said = "yes, env MAX_INDEXES, default 64"
    assert texts(extract(talk(("assistant", asked), ("person", said)))) == [f"{asked} – {said}"]
    assert not assistant("Fixed and documented in the README.", ("person", "ok"))


def test_a_guess_of_the_agent_is_kept_only_if_it_is_confirmed() -> None:
    guess = "The hang is probably caused by the keyring because `PIP_NO_INPUT` is not set."
    assert guess in texts(assistant(guess, ("person", "that was it")))
    assert not assistant(guess, ("person", "ok"))


@pytest.mark.parametrize(
    "remark",
    [
        *("its not that bad though", "its not the first time that happens", "ist es nicht schön"),
        *("nein danke, den fix mach ich selbst", "falsch war auch die höhe", "no need to fix it now"),
        *("its not only the width", "das war nicht schwer zu finden", "the parent width is fine"),
    ],
)
def test_a_remark_denies_nothing(remark: str) -> None:
    claim = "The broken layout in `grid.css` is caused by the missing width of 640 pixels."
    assert claim in texts(extract(talk(("assistant", claim), ("person", remark))))


@pytest.mark.parametrize(
    "said",
    [
        "Can't wait for the concert on 3 May in Berlin!",
        "Got it, I will keep that in mind for later.",
        "Hey John, how was the trip to Rome in May?",
        "Should we use Postgres 17 instead of MySQL 8?",
        "Thanks for the help with the new parser",
        "It was there again and they said so too.",
    ],
)
def test_pleasantries_questions_and_what_leans_on_nothing_are_no_facts(said: str) -> None:
    assert person(said) == [] and assistant(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "but i dont want to use it, lets finish pr 3 today",
        "hm then do we need it at all, since it takes 200ms",
    ],
)
def test_a_chore_or_a_question_with_a_number_is_no_remark(said: str) -> None:
    answer = "Lookups take 200 ms again, and the cache saves 88 % of them."
    assert not any(said in one for one in texts(extract(talk(("assistant", answer), ("person", said)))))


def test_a_sentence_that_leans_takes_its_neighbour_along() -> None:
    said = "The import job reads the old feed. It fails on Mondays because the feed is empty then."
    assert texts(assistant(said, ("person", "ok"))) == [said]


@pytest.mark.parametrize(
    "before, answer, said, kept",
    [
        ("The index is too big.", "I moved it to ssd2.", "and it must be unique, because of the sync", 1),
        ("The index is too big.", "Done.", "and it must be unique, because of the sync", 0),
        ("What about it?", "Two reports import kasse_legacy.", "Das bleibt bis Mai, dann fliegt es raus.", 1),
        ("The logs go to loki.", "Added.", "that one needs the header X-Scope-OrgID: media", 0),
        ("die zweite sollten wir übrigens löschen", "Welche meinst du?", "die tabelle readings_old", 0),
        ("Fine.", "The mock closes after 100 requests.", "ah ok that makes sense, bump it to 1000", 1),
        ("The second job is built in Warsaw.", "Ok.", "It must not share our service account.", 0),
        ("Ask Ines from platform.", "Noted.", "She's in Lisbon, so UTC+0.", 0),
        ("Ok.", "The lease lasts 15 seconds.", "thats too short, nodes pause for gc. 45", 1),
        ("Herr Roth kommt am 18. Mai.", "Notiert.", "Bis dahin müssen die Einheiten stehen.", 0),
        ("Ok.", "OpenTofu 1.10 has `use_lockfile`.", "dann nehmen wir gleich 1.10", 1),
        ("Fine.", "The mock closes after 100 requests.", "It is important that Alice reviews it.", None),
        ("Fine.", "The mock closes after 100 requests.", "it's 12 degrees in Kiel", None),
        ("Fine.", "The mock closes after 100 requests.", "coverage gate is 85%, dont lower it ever", None),
        ("Jo comes at 5.", "Noted.", "abstract: max 250 words, I wrote 268, cut it", None),
    ],
)
def test_what_leans_on_the_turn_before_comes_with_it(
    before: str, answer: str, said: str, kept: int | None
) -> None:
    found = texts(extract(talk(("person", before), ("assistant", answer), ("person", said))))
    text = said if kept is None else f"{(before, answer)[kept]} – {said}"
    assert text in found and said not in set(found) - {text}


# -- the last value ------------------------------------------------------------------------------------


def test_of_several_values_of_one_thing_the_last_stays_with_what_it_was() -> None:
    days = [f"The release is on {day} May." for day in (3, 10, 24, 31)]
    (found,) = extract(talk(*[("person", day) for day in days]))
    assert (found.text, found.was) == (days[-1], days[-2])
    (found,) = extract(
        talk(
            ("person", "The monthly budget is 1200 euros."),
            ("person", "The monthly budget was raised to 1300 euros because the rent rose."),
            ("person", "The monthly budget went to 1450 euros because the rent rose again."),
        )
    )
    assert "1450" in found.text and "1300" in found.was


def test_two_machines_two_prices_and_two_ports_are_two_facts() -> None:
    for one, other in (
        ("The staging server has 16 GB of memory.", "The backup server has 32 GB of memory."),
        ("The rye bread costs 5.20 euros.", "The wheat bread costs 3.10 euros."),
        ("The web service listens on port 8080.", "The metrics service listens on port 9102."),
        ("We decided that server 2-4 uses port 4204.", "We decided that server 2-5 uses port 4205."),
        ("Room 12 costs 80 euros a night.", "Room 13 costs 95 euros a night."),
        ("Zimmer 12 kostet 80 Euro die Nacht.", "Zimmer 13 kostet 95 Euro die Nacht."),
    ):
        assert len(extract(talk(("person", one), ("person", other)))) == 2


def test_each_phrase_is_asked_for_and_there() -> None:
    modules = (extraction, subagent)
    source = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in modules)
    assert PHRASES["denies"] and len(PHRASES) > 60
    assert not [name for name in PHRASES if f'"{name}"' not in source]
    asked = re.findall(r'(?:opens_as|has_phrase)\(\s*"([^"]+)"', source)
    assert len(asked) > 40 and set(asked) <= PHRASES.keys()


# -- what a bilingual treasurer says -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Budget poisson : 310 €.", True),
        ("Les tarifs 2027 : adulte 165 €, jeune 78 €, famille 390 €.", True),
        ("Deposit for the hall: 40 euros.", True),
        # Output, and what has no amount.
        ("Total: 495 €", False),
        ("Error: 404", False),
        ("Elapsed: 12.5 s", False),
        ("Mot de Yann reçu ce matin :", False),
        ("Cost: tbd", False),
    ],
)
def test_an_amount_with_its_name_is_a_statement(text: str, kept: bool) -> None:
    assert bool(person(text)) == kept


def test_a_correction_is_joined_with_what_it_is_about() -> None:
    found = extract(
        talk(
            (
                "person",
                "Les tarifs 2027 : adulte 165 €, famille 390 €. À mettre en ligne seulement le 1er janvier.",
            ),
            ("assistant", "Je prépare la page."),
            ("person", "Ah non pardon, famille c'est 380 €, pas 390."),
        )
    )
    assert any("165" in text and "380" in text for text in texts(found))


CLAIM = "The check 411 is booked under the youth fee of Anjali Nair."


@pytest.mark.parametrize(
    ("agent", "reply", "kept"),
    [
        (CLAIM, "No, the check 411 is from Marta for her son Ewen.", False),
        (CLAIM, "Non, le check 411 c'est celui de Marta pour Ewen.", False),
        (CLAIM, "No, that's fine, the check 411 is booked correctly.", True),
        (CLAIM, "No problem, check 411 was the last one.", True),
        (CLAIM, "No, also show me the list of the others.", True),
        (CLAIM, "The check 412 is from Marta for her son Ewen.", True),
        (f"{CLAIM} Shall I book check 412 for Ewen?", "No, check 412 is for Ole, not Ewen.", True),
    ],
)
def test_a_claim_that_the_person_corrects_is_not_kept(agent: str, reply: str, kept: bool) -> None:
    found = extract(talk(("assistant", agent), ("person", reply)), likely=0.3)
    assert any("Anjali" in text for text in texts(found)) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("mdr si ça continue je vends le Zodiac et on achète un yacht.", False),
        ("My sister thinks we should rewrite everything in React, lol.", False),
        ("lol, the API of the shop runs on port 8443 now.", True),
        ("haha ok, we use Postgres because SQLite locks too often.", True),
        ("lol never push to main on Fridays.", True),
        ("My sister thinks we should move the shop to Porto because of the rent.", True),
        ("If it continues to fail we call Marta from the hosting company.", True),
    ],
)
def test_a_joke_is_not_kept(text: str, kept: bool) -> None:
    assert bool(person(text)) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("I can't set reminders for the token of 14 March, but I noted it.", False),
        ("Je ne peux pas programmer le rappel du 14 mars, mais je l'ai noté.", False),
        ("I noted in docs/limits.md that the API allows 5 requests a second.", True),
    ],
)
def test_that_the_agent_has_noted_something_is_not_kept(text: str, kept: bool) -> None:
    found = extract(talk(("assistant", text)), likely=0.1)
    assert bool(found) == kept


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("One more rule: always run the linter before a push, we shipped two bugs last week.", None),
        ("Never deploy on Fridays, yesterday it cost us the evening.", None),
        ("Always pay by the new bank from 15 January 2027 on.", "2027-01-15"),
        ("We shipped the new shop last week because Alice was ready.", "2026-11-09/2026-11-15"),
    ],
)
def test_a_rule_has_no_past_day_of_its_reason(text: str, when: str | None) -> None:
    (found,) = person(text)
    assert found.when == when or (when and (found.when or "").startswith(when))


def test_what_leans_on_a_question_is_not_joined_with_what_was_said_before_it() -> None:
    found = extract(
        talk(
            ("person", "Lighthouse is at 93 on mobile after the change, so that's done."),
            ("assistant", "Great. Publishing /en/stages next?"),
            ("person", "It's live since Tuesday."),
        )
    )
    assert "Great. Publishing /en/stages next? – It's live since Tuesday." in texts(found)


@pytest.mark.parametrize(
    ("agent", "reply", "kept"),
    [
        ("Je ne sais pas, ce n'est pas dans mes notes.", "C'est moi et Maïwenn, 5 plats chacune.", True),
        ("I don't know, my notes don't say it.", "Maïwenn and me, five each.", True),
        ("Je ne sais pas, ce n'est pas dans mes notes.", "Je demande à Yann demain.", False),
        ("Je ne sais pas, ce n'est pas dans mes notes.", "Tant pis, merci.", False),
        ("The board decided that Loïc does it.", "Maïwenn and me, five each.", False),
    ],
)
def test_who_answers_their_own_question_is_kept_with_it(agent: str, reply: str, kept: bool) -> None:
    found = extract(talk(("person", "Qui fait le far ?"), ("assistant", agent), ("person", reply)))
    assert any(text.startswith("Qui fait le far ? – ") for text in texts(found)) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Finalement Élodie mange du poisson, elle m'a dit hier que seule la viande la gêne.", True),
        ("Mets plutôt un champ piège (honeypot).", True),
        ("On abandonne le forum, personne ne veut le modérer.", True),
        ("Finalement ça marche.", False),
        ("Finalement on verra demain pour la suite.", False),
        ("C'est plutôt bien comme ça.", False),
        ("Montre-moi plutôt le diff complet.", False),
        ("On passe à la suite maintenant ou tu relances ?", False),
        ("Finalement je vais relire le fichier.", False),
    ],
)
def test_what_is_chosen_in_french_is_kept(text: str, kept: bool) -> None:
    assert bool(person(text)) == kept


@pytest.mark.parametrize(
    "text",
    [
        "hugo decidió que sí quiere ducha.", "Elena cambió de turno, ahora trabaja de día",
        "al final vamos con teja árabe", "quedamos en vernos en su estudio",
        "ya no vamos con la constructora",
        "no, tengo que avisar antes del lunes", "abbiamo deciso di togliere il camino",
        "a Teresa decidiu não fazer piscina na casa", "wir haben uns beide gegen einen Aufzug entschieden",
    ],
)  # fmt: skip
def test_a_decision_or_a_day_is_kept_in_other_languages(text: str) -> None:
    turns = [Turn("a", "person", text), Turn("b", "assistant", "Ok.")]
    assert [one.text for one in extract(turns)] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "Bom dia, preciso de ajuda com um email para a Teresa.", "Hola, me ayudas con un correo para Teresa?",
        "Buenos días, necesito ayuda con un correo para Teresa.",
        "Good morning, I need help with an email to Teresa.",
        "necesito que me traduzcas este párrafo al inglés",
    ],
)  # fmt: skip
def test_to_ask_for_help_is_not_kept(text: str) -> None:
    assert extract([Turn("a", "person", text), Turn("b", "assistant", "Ok.")]) == []


def test_a_japanese_or_chinese_conversation_leaves_its_facts() -> None:
    """Nothing was kept in Chinese; a reason stood apart from its sentence, a short answer was lost, a whole
    sentence was taken for an answer, and a courtesy was kept."""
    said = talk(
        ("person", "サイトはAstroに移行した。ビルドが速いから。招待文を書いてください。"),
        ("assistant", "届出書は期間の初日の前日までに提出します。"),
        ("person", "来月の5日に大野さんの事務所に書類を持っていく。"),
        ("assistant", "承知しました。編集部の担当者はどなたですか？"),
        ("person", "木村さん"),
        ("assistant", "ありがとうございます。"),
        ("person", "はい、それでお願いします。"),
        ("person", "术语统一用“导入”，不要用“引入”。付款方式是支付宝。谢谢，辛苦了！"),
    )
    assert [each for each in texts(extract(said)) if "届出書" not in each] == [
        "サイトはAstroに移行した。ビルドが速いから。",
        "来月の5日に大野さんの事務所に書類を持っていく。",
        "編集部の担当者はどなたですか？ – 木村さん",
        "术语统一用“导入”，不要用“引入”。",
        "付款方式是支付宝。",
    ]
