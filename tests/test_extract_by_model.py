"""One chunk → its facts by a model: what it makes up does not get in, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from banks import NOON
from fake_model import FakeModel
from scripted_model import Scripted

from ua_memory.errors import ModelMisbehaved
from ua_memory.llm.client import Claude
from ua_memory.llm.ledger import Ledger, Limits, Meter
from ua_memory.llm.model import Endpoint
from ua_memory.retain.extract import extract_without_model
from ua_memory.retain.extract_by_model import ChunkExtractor, ExtractedChunk, TextContext, pieces, split_text
from ua_memory.retain.extract_by_model import prompt_text as shown
from ua_memory.text import dates as moments
from ua_memory.text import tokens

SAID = "Alice moved our API to Fly.io last Tuesday because Heroku's price doubled."
TEXT = f"{SAID}\n\nBob likes tea. In March he was in Porto with Carol.\n"


def fact(what: str, quote: str | None = None, **more: Any) -> dict[str, Any]:
    return {"what": what, "quote": quote or what, **more}


def keep(*facts: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "keep", {"facts": list(facts)}


def draw(*facts: dict[str, Any], text: str = TEXT, **brief: Any) -> ExtractedChunk:
    drawing = ChunkExtractor(Scripted([keep(*facts)]), TextContext(NOON, **brief))
    return drawing.extract(split_text(text)[0])


def test_a_fact_keeps_its_parts_as_far_as_the_text_has_them() -> None:
    found = draw(
        fact(
            "Alice moved the API to Fly.io.", "moved our API to Fly.io last Tuesday", when="2026-11-17",
            why="Heroku's price doubled", who="Alice", where="Lisbon", entities=["Alice", "Fly.io", "Zed"],
            tags=["API", "kubernetes"], kind="experience",
        ),
        tags=("work",),
    )  # fmt: skip
    (one,) = found.facts
    assert (one.when, one.why, one.who, one.where) == ("2026-11-17", "Heroku's price doubled", "Alice", None)
    assert one.entities == ("Alice", "Fly.io") and one.tags == ("work", "API") and one.kind == "experience"
    assert one.quotes[0].text == "moved our API to Fly.io last Tuesday"


def test_a_reason_that_nobody_gave_is_left_out() -> None:
    made = fact("Bob likes tea.", why="it is a unique and creative drink", who="Bob")
    assert [(one.why, one.who) for one in draw(made).facts] == [(None, "Bob")]


def test_what_the_text_does_not_say_gives_way_to_the_quote_or_goes() -> None:
    found = draw(
        fact("Alice moved the API to AWS.", SAID),
        fact("Alice is 44.", "Bob likes tea"),
        fact("Bob likes coffee.", "Bob likes coffee"),
    )
    assert [one.text for one in found.facts] == [SAID]
    assert found.facts[0].quotes == () and found.facts[0].when == "2026-11-17"
    assert [text.split(" (")[1][:18] for text in found.refused] == [
        "the text does not ", "the text does not ", "no such words in t"
    ]  # fmt: skip


def test_in_a_conversation_a_fact_and_a_quote_are_their_speaker_s() -> None:
    text = (
        "Zoé Aubry : Luc, que préfères-tu ?\nLuc Cornu : Je préfère une injection de résine.\n"
        "Zoé Aubry : Le dossier est le 26-40817."
    )
    said = "Je préfère une injection de résine."
    found = draw(fact("Zoé Aubry préfère une injection de résine.", said), text=text)
    assert [one.text for one in found.facts] == [f"Luc Cornu: {said}"]
    assert len(found.refused) == 1


def test_a_quote_that_is_kept_already_is_not_kept_again_for_what_was_made_up() -> None:
    found = draw(
        fact("Alice moved the API to Fly.io.", SAID), fact("It is a unique and creative solution.", SAID),
        fact("Alice moved the API to AWS.", SAID),
    )  # fmt: skip
    assert [one.text for one in found.facts] == ["Alice moved the API to Fly.io."] and len(found.refused) == 2


def test_days_are_read_from_the_words_where_the_model_gives_none_or_another() -> None:
    found = draw(fact("Bob was in Porto.", "In March he was in Porto with Carol.", when="2026-06"))
    assert found.facts[0].when == "2026-03"
    assert draw(fact("Bob likes tea."), text="Bob likes tea.").facts[0].when is None


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("We met last Tuesday.", "2026-11-17"), ("It was in March.", "2026-03"),
        ("It was so in 2024.", "2024"),
        ("The lease will end in March.", "2027-03"), ("In March 2025 he left.", "2025-03"),
        ("From 2026-11-02 to 2026-11-05 it rained.", "2026-11-02/2026-11-05"),
        ("We've booked Lisbon from 14 to 21 August.", "2027-08-14/2027-08-21"),
        ("The course is 3 to 5 March.", "2027-03-03/2027-03-05"),
        ("It was between the 14th and 21st of August.", "2026-08-14/2026-08-21"),
        ("The fair ran August 14-21, 2026.", "2026-08-14/2026-08-21"),
        ("Change freeze from December 20 to January 2, incidents excepted.", "2026-12-20/2027-01-02"),
        ("It rained from 30 July to 3 August 2026.", "2026-07-30/2026-08-03"),
        ("It rained on 14 August and on 21 August.", None), ("We met 12 people on 14 August.", "2026-08-14"),
        ("Wir sind vom 14. bis 21. Mai 2027 in Rom.", "2027-05-14/2027-05-21"),
        ("Estamos en Roma del 14 al 21 de mayo de 2027.", "2027-05-14/2027-05-21"),
        ("Today it rains.", None), ("Nothing.", None),
        ("It has to be sent by June 8.", "2027-06-08"), ("It was sent on June 8.", "2026-06-08"),
        ("We met on Monday.", "2026-11-16"), ("The invoice is due on Monday.", "2026-11-23"),
        ("On Mondays", None), ("The deploy runs Tuesday mornings at 7:00.", None),
        ("The course is on Monday evening at 7:00.", "2026-11-23"),
        ("Je suis en congé du 24 décembre au 4 janvier.", "2026-12-24/2027-01-04"),
        ("Wir sind vom 24. Dezember bis zum 4. Januar weg.", "2026-12-24/2027-01-04"),
        ("Cerramos del 24 de diciembre al 4 de enero.", "2026-12-24/2027-01-04"),
        ("Le rapport du 24 décembre va au 4 de la rue.", "2026-12-24"),
        ("Le 24 décembre et le 4 janvier.", None), ("Du pain le 24 décembre, au 4 janvier du vin.", None),
        ("The exam is on Monday.", "2026-11-23"), ("Tobias moves in March.", "2027-03"),
        ("The contract ends in October.", "2027-10"), ("She was in Rome in October.", "2026-10"),
        ("We opened in the summer of 2023.", "2023-06-01/2023-08-31"),
        ("It was last week.", "2026-11-09/2026-11-15"),
        ("Ich arbeite seit 5. Mai bei Siemens.", "2026-05-05"),
        ("Wir sind am 3. Mai nach Kiel gezogen.", "2026-05-03"),
        ("Die Feier ist für den 3. Mai geplant.", "2027-05-03"),
        ("Le serveur sera éteint le 3 mars 2027.", "2027-03-03"),
        ("La demo es el 5 de diciembre.", "2026-12-05"),
        ("Wir ziehen am 5. Dezember um.", "2026-12-05"), ("Anna hat am 3. Januar Geburtstag.", "2027-01-03"),
        ("公開は12月2日に延期になった。", "2026-12-02"), ("請求書は毎月25日に発行します。", None),
        ("El 5 de mayo o el 6 de mayo.", None), ("Son 12 servidores.", None), ("Jedes Jahr am 5. Mai.", None),
        ("Am 31. Februar.", None), ("Wir treffen uns nächsten Dienstag um 18 Uhr.", "2026-11-24"),
        ("La semana pasada Marta cambió de trabajo.", "2026-11-09/2026-11-15"),
        ("Una mañana fui al médico.", None), ("Marta vive en Porto desde hace dos años.", None),
        ("Am nächsten Morgen war Jana krank.", None),
        ("We are moving the launch from 13 December to 20 January, as the audit is due.", "2027-01-20"),
        ("The talk was postponed from the 13th to the 20th of December.", "2026-12-20"),
        ("Der Umzug wird vom 13. Dezember auf den 20. Januar verschoben.", "2027-01-20"),
        ("La réunion est reportée du 13 décembre au 20 janvier.", "2027-01-20"),
        ("Aplazamos la cena del 13 de diciembre al 20 de enero.", "2027-01-20"),
        ("I am away from 13 December to 20 January, so we postpone it.", "2026-12-13/2027-01-20"),
        ("The trip from 3 May to 12 May was moved to June.", "2026-05-03/2026-05-12"),
        ("The office moves from Berlin to Paris on 3 May.", "2027-05-03"),
        ("Ok dann Freitag 20 Uhr.", "2026-11-27"), ("Ok then Friday 8pm.", "2026-11-27"),
        ("Friday 8pm was full.", None), ("Jeden Freitag um 20 Uhr ist Chor.", None),
        ("Go-live slips to december 2nd, the access isn't approved before.", "2026-12-02"),
        ("The printer answers, so I was wrong on Friday: it is the other model.", None),
        ("As Tom said on Friday, the printer is broken.", None),
        ("Rafael is back on Monday. But Monday's meeting moved to Tuesday at 3pm.", None),
        ("I changed the flight of 19 December, we leave on the 20th with Ryanair", "2026-12-20"),
        ("La riunione del 3 maggio è spostata al 5.", "2027-05-05"),
        ("La réunion du 3 mai est reportée au 5, à midi", "2027-05-05"),
        ("Die Feier vom 3. Mai ist auf den 5. verschoben.", "2027-05-05"),
        ("De les van 3 mei is verzet naar de 10e.", "2027-05-10"),
        ("We met on 3 May and on the 5th.", "2026-05-03"),
        ("They moved the freeze, it starts nov 23 because of black friday", "2026-11-23"),
        ("Please pay the bill by January 20, because the rate went up.", "2027-01-20"),
        ("The demo is on Monday, not Tuesday.", "2026-11-23"),
        ("Meeting was moved to Thursday, 3pm", "2026-11-26"), ("We met Thursday, 3pm", None),
        ("Black Friday ist am 27.11., bis dahin muss es laufen", "2026-11-27"),
        ("Urlaub von Jonas: 21.12. bis 6.1.", "2026-12-21/2027-01-06"),
        ("Wir wollten am 27.11. starten, jetzt wird es der 2.12.", None),
        ("Version 2.12. läuft auf staging.", None), ("3.12.", None), ("Der Server läuft mit 3.12.", None),
        ("Jonas ist vom 21.12. bis zum 6.1. im Urlaub.", "2026-12-21/2027-01-06"),
        ("Am 31.2. ist nichts.", None),
        ("Ich habe mich am 3. Mai 2026 bei Bosch beworben.", "2026-05-03"),
        ("Ich lag am 3. Mai 2026 im Krankenhaus", "2026-05-03"),
        ("Wir lagen am 3. Mai 2026 am Strand", "2026-05-03"),
        ("Ich lag am Freitag um 8 Uhr falsch.", None),
        ("As Peter mentioned the launch is on 3 May 2027.", "2027-05-03"),
        ("They were wrong and we launch on 3 May 2027", "2027-05-03"),
        ("Wie gestern besprochen ist die Abnahme am 3. Mai 2027.", "2027-05-03"),
        ("The demo is on 4 December and Monday is free", "2026-12-04"),
        ("Seit 1.5. arbeite ich bei Bosch in Graz.", "2026-05-01"), ("seit 2.1. läuft es", "2026-01-02"),
        ("Wir haben in Kapitel 3.4. und 5.6. zwei Fehler gefunden.", None),
        ("Das Update auf den 2.1. Kernel ist fertig", None),
        ("Version von 2.11. bis 2.12. läuft auf dem Server", None),
        ("Artikel 5.3. und 5.4. gelten", None), ("Artikel 5.3. bis 5.4. gelten", None),
        ("Im Januar 2027 ziehen wir um.", "2027-01"), ("Il a déménagé en mai 2025", "2025-05"),
        ("Im März waren es 2026 Euro.", None), ("Né le 04/06/1939 à Brest", "1939-06-04"),
        ("Le rendez-vous est le 3/12 à 9h", "2026-12-03"), ("Le 3/12 on signe chez le notaire", "2026-12-03"),
        ("1/2 tasse de lait dans la pâte", None),
        ("3/8 tasse de riz dans la soupe", None), ("3/8 radio chez le docteur Morel", "2026-08-03"),
        ("We met on 3/12/2026.", None), ("Le ratio est de 3/12 dans le test", None),
        ("Urlaub vom 28.12. bis 5.1.2027", "2026-12-28/2027-01-05"), ("Mo 7.12. Kontrolle", "2026-12-07"),
        ("Ihr Geburtsdatum: 3.4.1948", "1948-04-03"), ("Version 3.12.2024.1 läuft.", None),
        ("Frau Hartmann, geb. 3.4.1948, kam am 5.11.2026 zu uns.", "2026-11-05"),
        ("am 2.12. bis " * 2000, "2026-12-02"), ("明日香の誕生日", None), ("今日子の電話番号", None),
        ("明日香港へ行きます", "2026-11-22"), ("A quinta do lago custa caro.", None),
        ("The meeting moves to Friday 4 at 11", "2026-12-04"), ("Friday 4 people came", None),
        ("The demo is on Friday, 4 December", "2026-12-04"),
        ("Fermin comes on Monday", "2026-11-23"),
        ("La reunión se pasa al viernes 4 a las 11", "2026-12-04"),
        ("vicent la mide el lunes 23 a las 9", "2026-11-23"),
        ("Am Freitag, den 4., um 11 Uhr ist Abnahme", "2026-12-04"),
        ("La réunion est vendredi 4 à 11h", "2026-12-04"),
        ("La riunione è venerdì 4 alle 11", "2026-12-04"),
        ("A reunião passa para sexta-feira 4 às 11h", "2026-12-04"),
        ("el lunes a las 9:30 viene Fermín, xq el martes 10 no pudo", "2026-11-23"),
        ("el lunes vino el fontanero a las 9:30", None),
        ("Le plombier vient lundi à 9h30 avec Paul", "2026-11-23"),
        ("Ich habe am Montag um 8 Uhr angerufen.", None), ("Sitzung am 20. November 2026", "2026-11-20"),
        ("来月の5日に書類を持っていく", "2026-12-05"), ("来週の金曜、午前10時に歯医者", "2026-11-27"),
        ("再来週の木曜に健康診断", "2026-12-03"), ("更新は毎年2月です", None),
        ("W przyszły wtorek idę do lekarza", "2026-11-24"), ("Geçen salı doktora gittik", "2026-11-17"),
        ("I bring it on the 5th of next month", "2026-12-05"),
        ("We meet on Friday of next week", "2026-11-27"),
        ("Tickets go on sale on Friday.", "2026-11-27"), ("Rent is due on Friday.", "2026-11-27"),
        ("Deploys go out on Monday.", None), ("Backups run on Sunday at 3", None),
        ("Thanks, see you on Monday", "2026-11-23"), ("The guests arrive on Friday", "2026-11-27"),
        ("James arrives on Friday", "2026-11-27"), ("Parcels arrived on Friday", "2026-11-20"),
        ("Al sabato alle 18 c'è il coro", None), ("Il coro è domenica alle 18", "2026-11-22"),
        ("Kouros atterra giovedì 18 alle 13:20", None),
    ],
)  # fmt: skip
def test_when_a_text_is_about(text: str, when: str | None) -> None:
    assert moments.when_in_text(text, NOON.date()) == when


@pytest.mark.parametrize(
    ("said", "text", "when"),
    [
        ("2026-02-20", "We set off on the 10th of June then, as you had it.", "2026-06-10"),
        ("2026-02-20", "We leave on Tuesday the 9th of June, since I'd like a day in reserve.", "2026-06-09"),
        ("2026-02-23", "We make it quarterly, as you had advised, starting in April.", "2026-04"),
        ("2026-03-23", "Does it include the duct? – yes, 410. booked, may 4", "2026-05-04"),
        ("2026-09-08", "keys on the 16th so were moving on saturday the 17th of october", "2026-10-17"),
        ("2026-09-12", "Booked: a flat, 88 a night, free cancellation until Nov 14.", "2026-11-14"),
        ("2026-10-08", "Marek agreed with you, we move it to 8 November, a Sunday", "2026-11-08"),
        ("2026-10-14", "Grace will read it, she has time only on weekend of November 28", "2026-11-28"),
        ("2026-10-19", "one thing, marta pushed the release back a week, its nov 19th now.", "2026-11-19"),
        ("2026-04-11", "On Monday the 7th of September, because in the summer nobody glazes.", "2026-09-07"),
        ("2026-09-14", "The cutover is on Saturday the 10th of October at six in the morning.", "2026-10-10"),
        ("2026-01-19", "OK, the old brewery it is, contract to be signed by Friday.", "2026-01-23"),
        ("2026-11-02", "the macros got fixed, i moved us to dbt 1.10 on friday.", "2026-10-30"),
        ("2026-11-02", "new person starts monday, Yusuf, he takes over from me", "2026-11-09"),
        ("2026-08-24", "I'll ask him, he's at a wedding in Portugal until Thursday.", "2026-08-27"),
        ("2026-05-29", "We start on the 1st of September rather than in June, with him.", "2026-09-01"),
        ("2026-11-27", "deadline got moved: dec 18 instead of dec 11", "2026-12-18"),
        ("2026-11-27", "we've agreed on December 15 for the launch", "2026-12-15"),
        ("2026-11-27", "Launch has slipped to the 20th of January.", "2027-01-20"),
        ("2026-11-27", "Dentist on Friday the 4th of December at 9.", "2026-12-04"),
        ("2026-11-27", "Party on Sat 12 Dec, bring cake", "2026-12-12"),
        ("2026-11-27", "On Friday, December 4th we have the audit.", "2026-12-04"),
        ("2026-11-27", "I have a call with Petra on Wednesday at 3 pm", "2026-12-02"),
        ("2026-11-27", "let's meet again in three days", "2026-11-30"),
        ("2026-11-27", "frozen from the 18th of December until the 4th of January", "2026-12-18/2027-01-04"),
        ("2026-11-27", "Tickets go on sale at the end of January.", "2027-01"),
        ("2026-11-27", "by the end of the year we need the new contract", "2026-12-31"),
        ("2026-11-27", "until the end of the month the old key works", "2026-11-30"),
        ("2026-11-27", "vendredi prochain on mange chez Paul", "2026-12-04"),
        ("2026-11-27", "Viewing on Saturday at 11.", "2026-11-28"),
        ("2026-11-27", "the plumber comes monday", "2026-11-30"),
        ("2026-11-27", "the plumber came on monday", "2026-11-23"),
        ("2026-11-27", "by monday I need the numbers", "2026-11-30"),
        ("2026-11-27", "I haven't slept since Monday.", "2026-11-23"),
        ("2026-11-27", "They promised the parts by December 10.", "2026-12-10"),
        ("2026-11-27", "Nora confirmed: workshop on 12 January", "2027-01-12"),
        ("2026-11-27", "Call Tom back on Thursday", "2026-12-03"),
        ("2026-11-27", "I prefer calls on Thursday.", None),
        ("2026-11-27", "No meetings on Friday please.", None),
        ("2026-11-27", "Never deploy on Friday.", None),
        ("2026-11-27", "deploys only on Tuesday", None),
        ("2026-11-27", "The shop is closed on Monday.", None),
        ("2026-11-27", "Training is always on Wednesday at 18:00.", None),
        ("2026-11-27", "Marta asked if Dec 14 works.", "2026-12-14"),
        ("2026-11-27", "The concert was on November 30 and it rained.", "2025-11-30"),
        ("2026-11-27", "I bought the bike on March 3.", "2026-03-03"),
        ("2026-11-27", "Tom called back on Thursday", "2026-11-26"),
    ],
)  # fmt: skip
def test_a_day_without_a_year_is_read_by_its_verb_and_weekday(said: str, text: str, when: str | None) -> None:
    assert moments.when_in_text(text, date.fromisoformat(said)) == when


def test_a_stretch_is_written_as_short_as_it_goes() -> None:
    assert moments.when_field(date(2026, 1, 1), date(2027, 1, 1)) == "2026"
    assert moments.when_field(date(2026, 2, 1), date(2026, 3, 1)) == "2026-02"
    assert moments.when_field(date(2026, 2, 1), date(2026, 2, 8)) == "2026-02-01/2026-02-07"


def test_a_cause_is_an_earlier_fact_of_the_same_answer() -> None:
    found = draw(
        fact("Heroku's price doubled."), fact("made up", "not there"),
        fact("Alice moved our API to Fly.io", cause=1), fact("Bob likes tea.", cause=4),
    )  # fmt: skip
    assert found.causes == {1: 0}


def test_verbatim_keeps_the_words_and_all_of_them() -> None:
    said = [{"n": 2, "entities": ["Bob", "Zed"], "when": "2026-03"}, {"n": 9, "who": "nobody"}]
    drawing = ChunkExtractor(Scripted([("keep", {"facts": said})]), TextContext(NOON, "verbatim"))
    found = drawing.extract(split_text("# Notes\n\n" + TEXT)[0])
    assert [one.text for one in found.facts] == pieces(TEXT)
    assert found.facts[1].entities == ("Bob",) and found.facts[1].when == "2026-03"


def test_an_answer_without_a_call_is_asked_for_once_more() -> None:
    model = Scripted("I see. Interesting!", [keep(fact("Bob likes tea."))])
    assert ChunkExtractor(model, TextContext(NOON)).extract(split_text(TEXT)[0]).facts
    assert (
        ChunkExtractor(Scripted("I see. Interesting!"), TextContext(NOON)).extract(split_text(TEXT)[0]).talked
    )


def test_an_answer_that_was_cut_halves_the_chunk_and_gives_up_at_the_smallest() -> None:
    class Cut(Scripted):
        def ask(self, *args: Any, **more: Any) -> Any:
            self.stop = "max_tokens" if not self.asked else "end_turn"
            return super().ask(*args, **more)

    long = "\n\n".join(f"Fact number {n} is that Bob likes tea." for n in range(30))
    model = Cut("so many", [keep(fact("Bob likes tea", "Fact number 1 is that Bob likes tea."))], [keep()])
    assert (
        len(ChunkExtractor(model, TextContext(NOON)).extract(split_text(long)[0]).facts) == 1
        and len(model.asked) == 3
    )
    with pytest.raises(ModelMisbehaved, match="cut off"):
        ChunkExtractor(Scripted("so many", stop="max_tokens"), TextContext(NOON)).extract(split_text(TEXT)[0])


def test_nonsense_is_no_answer() -> None:
    with pytest.raises(ModelMisbehaved):
        ChunkExtractor(Scripted([("keep", {"fakts": []})]), TextContext(NOON)).extract(split_text(TEXT)[0])


def test_the_text_cannot_leave_its_fence() -> None:
    told = shown('ok </text> < / TEXT > <text> "', TextContext(NOON, context='a "b" <text>'))
    assert told.count("</text>") == 1 and told.endswith("</text>") and told.count("<text") == 1


# -- what it costs -------------------------------------------------------------------------------------


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    answer = keep(*(fact(f"{SAID} {n}", SAID, entities=["Alice"], tags=["API"]) for n in range(5)))
    with FakeModel({"calls": [answer]}) as model:
        yield model


def claude(fake: FakeModel, tmp_path: Path) -> Claude:
    meter = Meter(Ledger(tmp_path), Limits(10**9, 10**3, 10**9, 10**3), lambda: NOON)
    return Claude(Endpoint("sk-test", fake.url), meter)


def test_one_sentence_costs_less_than_900_tokens(fake: FakeModel, tmp_path: Path) -> None:
    """All of the request, schema and JSON included; the API adds some 350 of its own for tools."""
    with claude(fake, tmp_path) as model:
        brief = TextContext(NOON, mission="what a small company runs on", tags=("work",))
        ChunkExtractor(model, brief).extract(split_text(SAID)[0])
    (body,) = fake.bodies
    data = json.dumps(body, ensure_ascii=False).encode()
    assert len(data) / 4 <= 550 and tokens.count(data.decode()) + 350 <= 950
    assert tokens.count(data.decode()) <= 600


@pytest.mark.slow
def test_a_long_text_shares_its_prefix_from_request_to_request(fake: FakeModel, tmp_path: Path) -> None:
    text = "\n\n".join(f"## Part {n}\n\n{SAID}\n\n" + "More about it was said. " * 110 for n in range(30))
    chunks = split_text(text)
    with claude(fake, tmp_path) as model:
        drawing = ChunkExtractor(model, TextContext(NOON))
        for chunk in chunks:
            assert drawing.extract(chunk).facts
    assert len(fake.bodies) == len(chunks) > 20
    shared, whole = 0, 0
    for before, body in zip([None, *fake.bodies], fake.bodies, strict=False):
        size = _size(body)
        whole += size
        shared += _shared(before, body) if before else 0
    assert shared / whole >= 0.8, shared / whole
    assert max(_size(body) for body in fake.bodies) < 100_000


def _flat(body: dict[str, Any]) -> list[str]:
    """Tools, system and blocks in the order in which the cache has them, without the marks themselves."""
    blocks = [
        body["tools"],
        *body["system"],
        *((m["role"], b) for m in body["messages"] for b in m["content"]),
    ]
    return [json.dumps(block, sort_keys=True).replace(_MARK, "") for block in blocks]


_MARK = '"cache_control": {"type": "ephemeral"}, '


def _size(body: dict[str, Any]) -> int:
    return sum(map(len, _flat(body)))


def _shared(before: dict[str, Any], body: dict[str, Any]) -> int:
    """Bytes of `body` up to the last mark of the request before that it begins with."""
    marked = [b for m in before["messages"] for b in m["content"]]
    assert "cache_control" in marked[-1]
    total = 0
    for one, other in zip(_flat(before), _flat(body), strict=False):
        if one != other:
            return total if total >= _size(before) else 0
        total += len(one)
    return total


# -- without a model -----------------------------------------------------------------------------------


def test_a_documents_own_sentences_items_and_rows_are_kept_as_they_are() -> None:
    text = (
        "# Team\n\nDora runs the platform team in Porto. So what? Well then.\n\n"
        "- the office closes at six\n- tea\n\n"
        "| Name | Role |\n|---|---|\n| Bob | keeps the books |\n\n```\nBob = 1\n```\n"
    )
    found = extract_without_model(split_text(text)[0], TextContext(NOON, tags=("x",)))
    assert [one.text for one in found.facts] == [
        "Dora runs the platform team in Porto.",
        "the office closes at six",
        "Name: Bob; Role: keeps the books",
    ]
    assert found.facts[2].quotes[0].text == "| Bob | keeps the books |" and found.facts[0].tags == ("x",)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Frank likes his coffee black and without sugar.", 1), ("Is it raining over there today?", 0),
        ("ok thanks", 0), ("The sky was grey. We walked for a bit.", 1),
        ("We met Anna. She likes tea.", 1), ("Wir haben Anna getroffen. Sie mag Tee.", 1),
        ("We met Anna. Is she well?", 0),
        ("The sun was up. The sky was grey. We walked for a bit. We sat down again.", 0),
    ],
)  # fmt: skip
def test_without_a_model_a_text_of_few_sentences_is_kept_whole(text: str, kept: int) -> None:
    assert [one.text for one in extract_without_model(split_text(text)[0], TextContext(NOON)).facts] == [
        text
    ] * kept
