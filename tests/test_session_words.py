"""The words of sessions: on the disk, found in the next session, and gone when they are forgotten."""

from __future__ import annotations

import io
import json
import re
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from banks import NOON, git
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import DONE, Scripted
from test_flush import ID, TALK, opened, transcript
from test_sync_machines import two

from ua_memory import Memory
from ua_memory.caller import untrusted
from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import CannotWrite, NotFound, Usage
from ua_memory.knowledge import sessions
from ua_memory.knowledge.sessions import (
    CODE_LINES,
    CUT_TURN,
    FORGOTTEN,
    PASSAGE,
    SessionFile,
    SessionTurn,
    is_announcement,
    older_than,
    parse,
    passages,
    shorten_turn,
    show,
)
from ua_memory.recall.arms import Ranked, parse_query
from ua_memory.recall.fusion import recent_first
from ua_memory.recall.search import for_prompt

AT = datetime(2026, 2, 12, 16, 2, tzinfo=UTC)
SHOP = Session("claude-code", "0b7c52e1-6f0d-4d0e-9a53-2f1d7f4f3c88", "/home/dev/shop")
ASKED = "why does the nightly export take an hour now? it was ten minutes in january"
ANSWER = "The index on `orders.created` was dropped by migration 0042; every run reads the whole table."


def turn(number: int, text: str, role: str = "person", minutes: int = 0) -> Turn:
    return Turn(f"entry-{number}", role, text, AT + timedelta(minutes=minutes))  # type: ignore[arg-type]


def said(memory: Memory, *texts: str, session: Session = SHOP) -> SessionFile:
    """A session in which a person and the agent take turns."""
    turns = [turn(n, text, "assistant" if n % 2 else "person", n) for n, text in enumerate(texts)]
    found = memory.sessions.add(session, turns, now=NOON)
    assert found
    return found


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return opened(tmp_path / "bank")


# -- the file ------------------------------------------------------------------------------------------------


def test_a_session_is_one_file_as_the_format_says(memory: Memory) -> None:
    found = said(memory, ASKED, "Let me look at the file.", "and?", ANSWER)
    assert found.name == "2026-02-12-1602-claude-code-0b7c52e1" and found.path.stat().st_mode & 0o777 == 0o600
    assert found.path.parent == memory.store.bank.state / "sessions"
    text = found.path.read_text()
    assert (
        f"session: {SHOP.session}\nclient: claude-code\nproject: shop\n" in text
        and f"title: {ASKED[:30]}" in text
    )
    assert re.search(rf"\n\*\*Person\*\* 16:02\n\n{re.escape(ASKED)} \^t-[0-9a-f]{{8}}\n", text)
    assert "Let me look" not in text and ANSWER in text and found.outcome == ANSWER


def test_the_same_turns_are_written_once(memory: Memory) -> None:
    found = said(memory, ASKED, ANSWER)
    before = found.path.read_bytes()
    assert said(memory, ASKED, ANSWER) == memory.sessions.get(found.name) == found
    assert found.path.read_bytes() == before
    longer = said(memory, ASKED, ANSWER, "and february?")
    assert longer.path == found.path and longer.path.read_bytes().startswith(before[:40])
    assert [one.text for one in longer.turns] == [ASKED, ANSWER, "and february?"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        (("thanks for yesterday", "why is the export slow?"), "why is the export slow?"),
        (("Hi there! The export is slow.",), "The export is slow."),
        (("Danke für gestern!\nDer Export ist langsam.",), "Der Export ist langsam."),
        (("hello",), "hello"),
        (("thanks for the parser fix broke main",), "thanks for the parser fix broke main"),
    ],
)  # fmt: skip
def test_a_greeting_or_thanks_is_no_title(said: tuple[str, ...], title: str) -> None:
    turns = [SessionTurn(f"t-{n:08x}", "person", text, "2026-02-12 16:02") for n, text in enumerate(said)]
    assert sessions.title_of(turns) == title


@given(st.text(alphabet="ab1 #-*+>.)\\`~|_=\n^t", max_size=60).filter(lambda text: bool(text.strip("\n "))))
def test_what_was_said_is_read_back(text: str) -> None:
    one = SessionTurn("t-00000000", "person", text.strip("\n"), "2026-02-12 16:02")
    file = SessionFile(Path("2026-02-12-1602-x-y.md"), "y", "x", turns=(one, replace(one, id="t-11111111")))
    data = show(file)
    read = parse(data, file.path)
    assert read and [each.id for each in read.turns] == ["t-00000000", "t-11111111"] and show(read) == data
    if "```" not in text and "~~~" not in text:
        assert [each.text.rstrip() for each in read.turns] == [one.text.rstrip()] * 2


def test_what_looks_like_a_turn_is_none() -> None:
    text = "**Agent** 09:00\n\n# title\n- item ^t-12345678\n```\n**Person** 10:00\n```"
    one = SessionTurn("t-00000000", "person", text, "2026-02-12 16:02")
    file = SessionFile(Path("2026-02-12-1602-x-y.md"), "y", "x", turns=(one,))
    read = parse(show(file), file.path)
    assert read and [each.text for each in read.turns] == [text]


def test_a_turn_of_a_later_day_says_so(memory: Memory) -> None:
    found = memory.sessions.add(SHOP, [turn(0, "first"), turn(1, "second", minutes=60 * 24)], now=NOON)
    assert found and "**Person** 2026-02-13 16:02" in found.path.read_text()
    assert [one.day for one in memory.sessions.get(found.name).turns] == ["2026-02-12", "2026-02-13"]


def test_a_persons_note_is_no_session(memory: Memory) -> None:
    found = said(memory, ASKED)
    (found.path.parent / "notes.md").write_text("# mine\n")
    assert [one.name for one in memory.sessions.all()] == [found.name]


def test_long_code_and_long_turns_are_cut_and_say_so() -> None:
    code = "\n".join(f"line {n}" for n in range(CODE_LINES + 5))
    short = shorten_turn(f"look\n```py\n{code}\n```\nthat")
    assert "line 2\n[14 more lines]\n```\nthat" in short and "line 3" not in short
    cut = shorten_turn("x" * (CUT_TURN + 1000))
    assert len(cut) < CUT_TURN + 100 and cut.endswith("[1,000 more characters]")


@pytest.mark.parametrize(
    "text",
    ["Let me read the file.", "Ok, I'll check the logs now. Looking at the tests first.", "Ich schaue nach."],
)
def test_an_announcement_is_left_out(text: str) -> None:
    assert is_announcement(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Redis runs on 10.2.3.4, we still have to rotate its certificate. Bye.",
         "Redis runs on 10.2.3.4, we still have to rotate its certificate."),
        ("Fine. Rounding is open, I left a TODO in shop.py.", "Rounding is open, I left a TODO in shop.py."),
        ("終わりました。認証はまだ実装していません。", "認証はまだ実装していません。"),
        ("nice. danke, bis morgen", ""), ("Thanks a lot for today, see you tomorrow!", ""),
        ("We still need the certificate, see you!", "We still need the certificate, see you!"),
        ("Bis morgen fehlt noch das Zertifikat von DHL.", "Bis morgen fehlt noch das Zertifikat von DHL."),
        ("Next time import the zones", "Next time import the zones"), ("Next time ask me first.", ""),
        ("The queue has:\n\n- a stream\n- a consumer\n\nNot done yet: the nodes", "Not done yet: the nodes"),
        ("Left for next time:\n1. zones\n2. the module", "Left for next time: 1. zones 2. the module"),
        ("Merci, à demain !", ""), ("perfect. shorter next time tho, i like 3 bullets max", ""),
    ],
)  # fmt: skip
def test_what_was_left_to_do_is_a_whole_sentence(text: str, left: str) -> None:
    assert sessions.find_unfinished([sessions.SessionTurn("t1", "person", text, "2026-11-26 09:00")]) == left


@pytest.mark.parametrize(
    "end",
    [
        "You're welcome, have a nice evening and see you tomorrow then!",
        "Let me know if there is anything else that I can do for you today.",
        "Shall I look into the other parts of the code tomorrow morning?",
        "Gern geschehen, ich wünsche dir noch einen schönen Abend, bis morgen!",
        "Je ne sais pas, ce n'est pas dans mes notes.",
        "I don't know, nothing of that is in the repository.",
    ],
)
def test_a_goodbye_or_an_offer_is_no_outcome(end: str) -> None:
    turn = sessions.SessionTurn("t1", "agent", f"{ANSWER} {end}", "2026-11-26 09:00")
    assert sessions.outcome_of([turn]) == ANSWER


@pytest.mark.parametrize(
    "text",
    ["I'll use port 6543.", "Let me read `config.py`.", "The tests fail because the pool leaks.", "Done.",
     ANSWER, "Ok, going with ReportLab for receipts.", "I will check that Marta agrees, since she decides."],
)  # fmt: skip
def test_what_says_something_is_kept(text: str) -> None:
    assert not is_announcement(text) or "agrees" in text


def test_who_is_no_side_of_the_talk_is_left_out(memory: Memory) -> None:
    turns = [
        turn(0, "hello there"),
        replace(turn(1, "sub", "assistant"), agent="a1"),
        turn(2, "Edit x: ok", "tool"),
    ]
    found = memory.sessions.add(SHOP, turns, now=NOON)
    assert found and [one.text for one in found.turns] == ["hello there"]
    assert memory.sessions.add(Session("codex", "s2"), turns[2:], now=NOON) is None


def test_passages_are_neighbouring_turns() -> None:
    turns = tuple(
        SessionTurn(f"t-{n:08x}", "person", "word " * 60, "2026-02-12 16:02", n * 4, n * 4 + 3)
        for n in range(9)
    )
    long = SessionTurn("t-ffffffff", "agent", "A sentence of some length. " * 100, "2026-02-12 16:05", 40, 44)
    found = list(passages(SessionFile(Path("x.md"), "y", "x", turns=(*turns, long))))
    assert all(len(one.text) <= PASSAGE + 100 for one in found) and len(found) > 4
    assert [(one.line, one.end) for one in found][:2] == [(0, 7 + 4), (12, 12 + 11)]
    assert "".join(one.text.removeprefix("Agent: ") for one in found[3:]).count("sentence") == 100


# -- finding it ----------------------------------------------------------------------------------------------


def test_what_was_said_is_found_behind_the_facts(memory: Memory) -> None:
    memory.insert("The nightly export is slow on Mondays.")
    found = said(memory, ASKED, ANSWER, "ok. lunch", "Enjoy!")
    hits = memory.search("why is the nightly export slow").hits
    assert [hit.item.record for hit in hits[:2]] == ["fact", "session"]
    item = hits[1].item
    assert (item.path, item.kind, item.client, item.day) == (
        str(found.path),
        "session",
        "claude-code",
        "2026-02-12",
    )
    assert len(hits[1].snippet) <= 300 and "project:shop" in item.tags
    assert memory.get(f"sessions/{found.name}:{item.line}-{item.end}").text.startswith("**Person** 16:02")
    link = f"[[{found.name}#^{found.turns[1].id}]]"
    assert ANSWER in memory.get(link).text
    with pytest.raises(NotFound, match="not on this machine"):
        memory.get("[[2026-01-01-0000-codex-deadbeef#^t-00000000]]")


def test_a_passage_goes_under_the_fact_that_quotes_it(memory: Memory) -> None:
    memory.flush(transcript())
    hits = memory.search("why did we leave Heroku for Fly.io").hits
    assert hits[0].item.record == "fact" and [one.record for one in hits[0].folded] == ["session"]
    assert [hit.item.record for hit in hits].count("session") == 0


def test_a_passage_that_answers_better_stands_for_itself(memory: Memory) -> None:
    memory.flush(transcript())
    hits = memory.search("how many minutes does the deploy take, and where is its config").hits
    assert any("4 minutes" in hit.snippet for hit in hits[:2])


def test_a_passage_with_all_the_words_stands_before_a_fact_with_none(memory: Memory) -> None:
    """To the model, which is English, all Spanish texts are alike: each fact passed for a good answer."""
    memory.insert("Hemos decidido alojar la tienda en Hetzner porque Heroku ha duplicado el precio.")
    memory.insert("No uses nunca tabuladores en este proyecto, siempre cuatro espacios.")
    said = "El fallo del inicio de sesión venía de la cookie: caducaba a los 5 minutos."
    memory.sessions.add(SHOP, [turn(0, said), turn(1, "Lo he arreglado en auth.py.")], now=NOON)
    answer = memory.search("¿qué fallo tenía el inicio de sesión?")
    assert answer.answered and "cookie" in answer.hits[0].snippet


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_with_the_same_words_the_later_stands(memory: Memory, first: int) -> None:
    for at in ((10, 2), (2, 10))[first]:
        other = replace(SHOP, session=f"{at}-session")
        memory.sessions.add(other, [replace(turn(0, ASKED), at=AT + timedelta(days=at))], now=NOON)
    (hit,) = memory.search("nightly export").hits
    assert hit.item.day == "2026-02-22" and [one.day for one in hit.folded] == ["2026-02-14"]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("when do the lambs get their tags", "after weaning"),
        ("when did the lambs get their tags before", "in week three"),
    ],
)
def test_of_two_that_match_about_as_well_the_later_stands_first(
    memory: Memory, query: str, first: str
) -> None:
    """Nothing in the later one says that a value changed; a question about the past is for the earlier."""
    told = (
        "the lambs get their ear tags in week three",
        "the lambs get their ear tags after weaning, all at once",
    )
    for number, text in enumerate(told):
        other = replace(SHOP, session=f"{number}-session")
        memory.sessions.add(other, [replace(turn(0, text), at=AT + timedelta(days=30 * number))], now=NOON)
    assert first in memory.search(query).hits[0].item.text


def test_a_fact_stands_before_a_passage_that_asks_the_same(memory: Memory) -> None:
    for number, text in enumerate(
        ("which vet do we call for the goats?", "who is the vet for the goats anyway?")
    ):
        other = replace(SHOP, session=f"{number}-session")
        memory.sessions.add(other, [replace(turn(0, text), at=AT + timedelta(days=number))], now=NOON)
    memory.insert("The vet for the goats is Dr. Sand.")
    assert "Dr. Sand" in memory.search("who is the vet for the goats").hits[0].item.text


FILES = tuple(
    text
    for n in range(12)
    for text in (
        f"please also check file number {n} of the importer for leftovers",
        f"Checked file {n}, it looks fine to me and needs no change at all.",
    )
)


@pytest.mark.parametrize(
    "reply",
    [
        "Understood.",
        "I don't know that, the notes do not say.",
        "Which one do you mean?",
        "Let me look first.",
    ],
)
def test_a_question_without_an_answer_is_none(memory: Memory, reply: str) -> None:
    """Neither the passage that asks nor the others, which have the question for a title."""
    memory.insert("The label printer is a 300 dpi Zebra ZD421.")
    said(memory, "what is the resolution of the label printer?", reply, *FILES)
    hits = memory.search("what is the resolution of the label printer").hits
    assert hits[0].item.record == "fact" and all(hit.match < 0.35 for hit in hits[1:]), hits[1]


@pytest.mark.parametrize("reply", ["300 dpi.", "It says 300, and I see no reason to doubt that."])
def test_a_question_with_its_answer_is_one(memory: Memory, reply: str) -> None:
    said(memory, "what is the resolution of the label printer?", reply, *FILES)
    answer = memory.search("what is the resolution of the label printer")
    assert answer.answered and reply in answer.hits[0].item.text


def test_a_title_that_states_something_counts_for_every_passage(memory: Memory) -> None:
    turns = [turn(n, text, "assistant" if n % 2 else "person", n) for n, text in enumerate(FILES)]
    memory.sessions.add(SHOP, turns, now=NOON, title="The label printer of hall 2")
    assert {hit.item.record for hit in memory.search("label printer").hits} == {"session"}


def test_what_is_newer_than_all_sessions_gains_as_much(memory: Memory) -> None:
    memory.insert("The vet for the goats is Dr. Sand.")
    said(memory, "the vet for the goats was late")
    fact, passage = (hit.item for hit in memory.search("vet for the goats").hits)
    assert (fact.record, passage.record) == ("fact", "session")
    query = parse_query(memory.index.words, "vet for the goats", None, ())
    earlier = Ranked(replace(passage, key="earlier", day="2026-01-12"), 0.5, {})
    found = [Ranked(fact, 0.74, {}), Ranked(passage, 0.7, {}), earlier]
    assert recent_first(found, query)[0].item.record == "fact"
    older = [Ranked(replace(fact, day="2026-01-13"), 0.74, {}), *found[1:]]
    assert recent_first(older, query)[0].item.record == "session"
    certain = [older[0]._replace(score=0.95), older[1]._replace(score=0.9), earlier]
    assert recent_first(certain, query)[0].item.record == "fact"
    # A note without a day is not an older one, but it must match better.
    undated = [Ranked(replace(fact, day=None), 0.74, {}), *found[1:]]
    assert recent_first(undated, query)[0].item.record == "fact"
    worse = [found[1], undated[0]._replace(score=0.65), earlier]
    assert recent_first(worse, query)[0].item.record == "session"
    # Nor is what was ingested later newer than a fact that matches better.
    better = Ranked(replace(fact, key="better", day="2026-01-13"), 0.9, {})
    assert recent_first([better, *found], query)[0] is better


def test_a_much_better_match_stands_before_a_later_one(memory: Memory) -> None:
    for number, text in enumerate((ASKED, "the export of wool goes to Bradford this year")):
        other = replace(SHOP, session=f"{number}-session")
        memory.sessions.add(other, [replace(turn(0, text), at=AT + timedelta(days=30 * number))], now=NOON)
    assert ASKED in memory.search("why does the nightly export take an hour").hits[0].item.text


def test_the_person_stands_before_the_agent(memory: Memory) -> None:
    for number, role in enumerate(("person", "assistant")):
        other = replace(SHOP, session=f"{number}-session")
        memory.sessions.add(other, [replace(turn(0, ASKED, role), at=AT + timedelta(days=number))], now=NOON)
    (hit,) = memory.search("nightly export").hits
    assert hit.item.origin == "person" and hit.item.day == "2026-02-12"


def test_sessions_count_for_no_entity_and_no_file_of_the_bank(memory: Memory) -> None:
    memory.insert("Operations at Northwind are led by Marta.")
    said(memory, "Marta and Ines of Northwind met Ines at Northwind", "Ines agreed.")
    memory.refresh()
    assert [one.name for one in memory.entities.list()] == ["Marta", "Northwind"]
    assert memory.health.verify() == []


def test_a_prompt_is_given_the_passages_of_its_project_alone(memory: Memory) -> None:
    said(memory, ASKED, ANSWER)
    said(memory, ASKED, ANSWER, session=replace(SHOP, session="ffff", cwd="/home/dev/other"))
    prompt = "the nightly export takes an hour again"
    answer = memory.search(prompt, limit=10)
    chosen = for_prompt(answer, prompt, "shop", memory.config)
    assert len(chosen.hits) == 1 and "hour" in chosen.hits[0].snippet
    assert for_prompt(answer, prompt, "third", memory.config).hits == ()
    assert for_prompt(answer, prompt, "shop", memory.config, SHOP.session).hits == ()
    assert for_prompt(answer, prompt, "shop", memory.config, "ffff").hits == chosen.hits
    assert for_prompt(answer, prompt, "shop", replace(memory.config, sessions_recall=False)).hits == ()


@pytest.mark.parametrize(
    ("prompt", "given"),
    [("please extend the nightly export.py", False), ("please extend the nightly export", True)],
)
def test_a_prompt_about_a_file_is_given_passages_that_name_it(
    memory: Memory, prompt: str, given: bool
) -> None:
    said(memory, ASKED, ANSWER)
    answer = memory.search(prompt, limit=10)
    assert bool(for_prompt(answer, prompt, "shop", memory.config).hits) == given


@pytest.mark.parametrize("prompt", ["looks good", "looks good, go on", "export, ok?", "ja mach das, gut"])
def test_a_prompt_that_only_approves_is_given_no_passage(memory: Memory, prompt: str) -> None:
    said(memory, "Looks good! Go on, export it. Ja, mach das, gut!", "The export looks good.")
    answer = memory.search(prompt, limit=10)
    assert answer.hits and not for_prompt(answer, prompt, "shop", memory.config).hits


def test_a_flush_keeps_the_words_and_links_its_facts_to_them(memory: Memory) -> None:
    (done,) = memory.flush(transcript()).done
    (words,) = memory.sessions.all()
    assert words.session == ID and words.read_by == "extraction" and words.through
    assert [one.speaker for one in words.turns] == ["person", "agent", "person", "agent"]
    chain = memory.history.why(f"^{done.facts[0].id}")
    assert chain.steps[0].session.words == words.turns[0].text  # type: ignore[union-attr]
    memory.sessions.delete(words)
    assert memory.history.why(f"^{done.facts[0].id}").breaks == () and memory.health.verify() == []


def rows(*records: dict[str, object]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([{"type": "ai-title", "aiTitle": "Off Heroku", "sessionId": ID}], "Off Heroku"),
        (
            [{"type": "custom-title", "customTitle": "Hosting", "sessionId": ID},
             {"type": "ai-title", "aiTitle": "Off Heroku", "sessionId": ID}],
            "Hosting",
        ),
        ([{"type": "summary", "summary": "Hosting costs", "leafUuid": "x"}], "Hosting costs"),
        ([{"type": "ai-title", "aiTitle": 7}, {"type": "summary"}], None),
    ],
)  # fmt: skip
def test_the_clients_title_is_the_sessions(
    memory: Memory, records: list[dict[str, object]], title: str | None
) -> None:
    memory.flush(io.BytesIO(rows(*records) + transcript().getvalue()))
    (words,) = memory.sessions.all()
    assert words.title == (title or words.turns[0].text[:77].rsplit(" ", 1)[0] + " …")


def test_a_later_title_changes_the_front_matter_and_no_more(memory: Memory) -> None:
    talk = transcript().getvalue()
    first = memory.conversations.capture(Session("claude-code", ID), io.BytesIO(talk))
    (before,) = memory.sessions.all()
    named = io.BytesIO(talk + rows({"type": "custom-title", "customTitle": "Hosting", "sessionId": ID}))
    spot = astuple(first.position)
    assert memory.conversations.capture(Session("claude-code", ID), named, spot=spot).turns == 0
    assert memory.sessions.get(ID) == replace(before, title="Hosting")
    memory.flush()
    assert memory.sessions.get(ID).title == "Hosting"


def test_a_model_names_a_session_that_its_client_does_not(memory: Memory) -> None:
    named = [("name_session", {"title": "Leaving Heroku", "outcome": "The API runs on Fly.io."})]
    memory.flush(transcript(), model=Scripted(named, DONE))
    (words,) = memory.sessions.all()
    assert (words.title, words.outcome) == ("Leaving Heroku", "The API runs on Fly.io.")
    titled = rows({"type": "ai-title", "aiTitle": "Off Heroku"}) + transcript(name="another").getvalue()
    memory.flush(io.BytesIO(titled), model=Scripted(named, DONE))
    assert memory.sessions.get("another").title == "Off Heroku"


def test_a_model_cannot_name_what_was_not_said(memory: Memory) -> None:
    named = [("name_session", {"title": "Moving to AWS for $99", "outcome": "It failed."})]
    memory.flush(transcript(), model=Scripted(named, DONE))
    assert "AWS" not in memory.sessions.get(ID).title


def test_what_waits_for_its_flush_is_found(memory: Memory) -> None:
    memory.conversations.enqueue(transcript(), force=True)
    hits = memory.search("how long does the deploy take").hits
    assert hits[0].item.record == "session" and "4 minutes" in hits[0].item.text


@pytest.mark.parametrize("kept", [True, False])
def test_the_switch(tmp_path: Path, kept: bool) -> None:
    memory = opened(tmp_path / "bank", sessions_keep=kept)
    (done,) = memory.flush(transcript()).done
    assert len(list(memory.sessions.all())) == kept
    assert ("[[" in str(done.facts[0].source)) == kept and memory.store.bank.sessions.exists() == kept


def test_a_group_chat_is_not_kept_unless_switched_on(tmp_path: Path) -> None:
    group = Session("openclaw", "g1", group="family")
    for number, wanted in enumerate((False, True)):
        memory = opened(tmp_path / f"bank-{number}", sessions_groups=wanted)
        memory.conversations.flush_turns(group, [turn(0, "we always meet on Sundays at noon")])
        assert bool(list(memory.sessions.all())) == wanted
    chat = memory.filters(tags=["group:family"], match="all_strict")
    (hit,) = memory.search("when do we meet", filters=chat).hits
    assert hit.item.record == "fact" and [one.record for one in hit.folded] == ["session"]


def test_secrets_do_not_reach_the_file(memory: Memory) -> None:
    key = "sk-ant-api03-" + "a1B2" * 20
    memory.conversations.flush_turns(SHOP, [turn(0, f"the key is {key} for the api")])
    (words,) = memory.sessions.all()
    assert key not in words.path.read_text() and "[redacted" in words.turns[0].text


# -- letting go of it ----------------------------------------------------------------------------------------


def test_forgetting_a_fact_empties_its_turn(memory: Memory) -> None:
    (done,) = memory.flush(transcript()).done
    fact = next(fact for fact in done.facts if "Heroku" in fact.text)
    found = memory.forgetting.forget(f"^{fact.id}")
    (words,) = memory.sessions.all()
    assert words.turns[0].text == FORGOTTEN and "Heroku" not in words.path.read_text()
    assert found.proof and found.proof.is_clean and found.cleared and found.cleared.turns == 1
    assert not any("Heroku" in hit.snippet for hit in memory.search("why did we leave Heroku").hits)


def test_what_was_forgotten_titles_no_session(memory: Memory) -> None:
    found = said(memory, "Berta lives in Elm Street 5", ANSWER, "which port has redis?")
    memory.sessions.forget(lambda turn: "Berta" in turn.text)
    assert memory.sessions.get(found.name).title == "which port has redis?"


def test_an_archive_takes_the_words_along_when_asked(tmp_path: Path) -> None:
    one = opened(tmp_path / "one")
    one.flush(transcript())
    (words,) = one.sessions.all()
    assert one.remote.export(tmp_path / "plain.tar").sessions == 0
    assert one.remote.export(tmp_path / "all.tar", sessions=True).sessions == 1
    assert words.turns[1].text.encode() in (tmp_path / "all.tar").read_bytes()
    assert words.turns[1].text.encode() not in (tmp_path / "plain.tar").read_bytes()
    first = opened(tmp_path / "two")
    assert first.remote.restore(tmp_path / "plain.tar").sessions == 0 and not list(first.sessions.all())
    two = Memory.open(tmp_path / "two", now=lambda: NOON)  # under its new name
    assert two.remote.restore(tmp_path / "all.tar", dry_run=True).sessions == 1
    assert not list(two.sessions.all()) and two.remote.restore(tmp_path / "all.tar").sessions == 1
    assert [(one.name, one.turns) for one in two.sessions.all()] == [(words.name, words.turns)]
    assert two.remote.restore(tmp_path / "all.tar").sessions == 0
    hits = two.search("how long does the deploy take").hits
    assert any(item.record == "session" for hit in hits for item in (hit.item, *hit.folded))


def test_an_archive_does_not_bring_back_what_was_forgotten(tmp_path: Path) -> None:
    memory = opened(tmp_path / "one")
    (done,) = memory.flush(transcript()).done
    memory.remote.export(tmp_path / "all.tar", sessions=True)
    fact = next(fact for fact in done.facts if "Heroku" in fact.text)
    memory.forgetting.forget(f"^{fact.id}")
    memory.sessions.delete(memory.sessions.get(ID))
    memory.remote.restore(tmp_path / "all.tar")
    assert memory.sessions.get(ID).turns[0].text == FORGOTTEN
    assert "Heroku" not in memory.sessions.get(ID).path.read_text()


def test_a_tombstone_from_another_machine_empties_the_turn_that_said_it(tmp_path: Path) -> None:
    one, other = two(tmp_path)
    there, here = (Memory.open(bank.root, now=lambda: NOON) for bank in (one, other))
    text = "The alarm code of the office is kept by Berta in the blue folder."
    said(here, f"Good morning. {text} What else?", ANSWER)
    fact = there.insert(text).fact
    there.forgetting.forget(f"^{fact.id}")
    there.remote.sync()
    here.remote.sync()
    assert here.sessions.get("0b7c").turns[0].text == FORGOTTEN


def test_forgetting_a_session_deletes_its_words(memory: Memory) -> None:
    memory.flush(transcript())
    memory.forgetting.forget(session=ID)
    assert list(memory.sessions.all()) == [] and memory.search("Fly.io deploy").hits == ()


def test_old_sessions_expire(tmp_path: Path) -> None:
    memory = opened(tmp_path / "bank", sessions_days=30)
    said(memory, ASKED, ANSWER)
    memory.search("nightly export")
    before = memory.index.words.text_ids()
    memory.flush(transcript())
    assert [one.session for one in memory.sessions.all()] == [ID] and older_than(NOON, 30) > "2026-02-12"
    memory.search("nightly export")
    assert before and not before & memory.index.words.text_ids()
    assert set(memory.index.cache.missing(memory.index.embeds.model, before)) == before


def test_a_name_is_a_files_or_the_beginning_of_an_id(memory: Memory) -> None:
    found = said(memory, ASKED)
    assert memory.sessions.get("0b7c") == memory.sessions.get(f"sessions/{found.name}.md") == found
    said(memory, ASKED, session=replace(SHOP, session="0b7cffff"))
    with pytest.raises(Usage, match="2 sessions begin with this"):
        memory.sessions.get("0b7c")
    with pytest.raises(NotFound):
        memory.sessions.get("../../etc/passwd")


def test_a_file_that_cannot_be_read_is_named(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(memory, ASKED)

    def refused(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(CannotWrite, match=found.path.name):
        memory.sessions.get(found.name)


def test_git_of_a_code_repository_sees_nothing_of_them(tmp_path: Path) -> None:
    root = tmp_path / "code"
    root.mkdir()
    git(root, "init", "-q")
    memory = Memory.init(root)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")
    memory.sessions.add(SHOP, [turn(0, ASKED)], now=NOON)
    assert git(root, "status", "--porcelain") == "" and list(memory.sessions.all())
    git(root, "clean", "-qfdx")
    assert list(memory.sessions.all())


def test_the_shapes_are_json(memory: Memory) -> None:
    from ua_memory.views import hits as views

    found = said(memory, ASKED, ANSWER)
    shape = json.loads(json.dumps(views.full_session_json(found)))
    assert shape["name"] == found.name and [one["speaker"] for one in shape["turns"]] == ["person", "agent"]
    assert sessions.title_of(found.turns) == shape["title"]


# -- in the bank ---------------------------------------------------------------------------------------------

IN_BANK = "memory/sessions"


@pytest.fixture
def shared(tmp_path: Path) -> Memory:
    return opened(tmp_path / "bank", sessions_place="bank")


def in_state(memory: Memory) -> list[Path]:
    return list(memory.store.bank.sessions.glob("*.md"))


def in_bank(memory: Memory) -> list[Path]:
    return list((memory.store.bank.root / IN_BANK).glob("*"))


def test_a_flush_puts_the_words_into_the_bank_with_its_facts(shared: Memory) -> None:
    shared.conversations.enqueue(transcript(), force=True)
    assert len(in_state(shared)) == 1 and in_bank(shared) == []
    (done,) = shared.flush().done
    assert in_state(shared) == [] and len(in_bank(shared)) == 1
    (words,) = shared.sessions.all()
    newest = shared.history.log(limit=1)[0]
    assert newest.id == done.revision and f"{IN_BANK}/{words.path.name}" in newest.paths
    assert words.read_by == "extraction" and words.through
    assert shared.health.verify() == [] and shared.history.why(f"^{done.facts[0].id}").breaks == ()
    hits = shared.search("how long does the deploy take").hits
    assert any(item.record == "session" for hit in hits for item in (hit.item, *hit.folded))
    assert not any(hit.item.record == "passage" for hit in hits)


def test_a_session_that_goes_on_is_put_there_again(shared: Memory) -> None:
    shared.flush(transcript())
    more = transcript(*TALK, "p: And the backups go to Hetzner every night.", "Noted.")
    shared.conversations.enqueue(more, force=True)
    assert len(in_state(shared)) == 1 and len(shared.sessions.get(ID).turns) == 6
    shared.flush()
    assert in_state(shared) == [] and len(in_bank(shared)) == 1
    assert len(shared.sessions.get(ID).turns) == 6 and shared.health.verify() == []


def test_a_session_that_goes_on_is_found_once(shared: Memory) -> None:
    shared.flush(transcript())
    shared.conversations.enqueue(transcript(*TALK, "p: And the backups go to Hetzner.", "Noted."), force=True)
    hits = shared.search("where do the backups go, and where is the config of the deploy").hits
    (hit,) = (hit for hit in hits if hit.item.record == "session")
    assert hit.item.path.endswith(str(in_state(shared)[0])) and [i.record for i in hit.folded] == ["session"]


def test_turns_that_another_machine_sent_stay_when_the_session_goes_on_here(tmp_path: Path) -> None:
    one, other = two(tmp_path)
    here, there = (
        Memory.open(it.root, config=replace(it.store.config, sessions_place="bank"), now=lambda: NOON)
        for it in (one, other)
    )
    here.flush(transcript())
    here.remote.sync()
    there.remote.sync()
    here.conversations.enqueue(transcript(*TALK, "p: Here the backups go to Hetzner."), force=True)
    more = transcript(*TALK, "p: There the logs go to Grafana.").getvalue().replace(b"-e5", b"-other")
    there.conversations.enqueue(io.BytesIO(more), force=True)
    there.flush()
    there.remote.sync()
    here.remote.sync()
    here.flush()
    said = [turn.text for turn in here.sessions.get(ID).turns]
    assert len(said) == len(TALK) + 2 and in_state(here) == []
    assert {"Here the backups go to Hetzner.", "There the logs go to Grafana."} <= set(said)


def test_what_a_killed_flush_left_in_both_places_is_swept(shared: Memory) -> None:
    shared.conversations.enqueue(transcript(), force=True)
    (left,) = in_state(shared)
    data = left.read_bytes()
    shared.flush()
    left.write_bytes(data)
    assert len(list(shared.sessions.all())) == 1
    shared.flush()
    assert in_state(shared) == [] and len(in_bank(shared)) == 1


def test_forgetting_reaches_the_words_in_the_bank(shared: Memory) -> None:
    (done,) = shared.flush(transcript()).done
    fact = next(fact for fact in done.facts if "Heroku" in fact.text)
    found = shared.forgetting.forget(f"^{fact.id}")
    (words,) = shared.sessions.all()
    assert "Heroku" not in words.path.read_text() and found.proof and found.proof.is_clean
    assert not any("Heroku" in hit.snippet for hit in shared.search("why did we leave Heroku").hits)
    assert shared.health.verify() == []
    shared.sessions.delete(words)
    assert in_bank(shared) == [] and shared.store.survey().files and not shared.health.verify()


def test_a_note_among_them_stays_a_note(shared: Memory) -> None:
    shared.flush(transcript())
    note = shared.store.bank.root / IN_BANK / "about.md"
    note.write_text("# About\n\nThe xylophone folder has what was said.\n")
    hits = shared.search("xylophone folder").hits
    assert hits[0].item.record == "passage" and len(list(shared.sessions.all())) == 1


def test_the_words_reach_another_machine(tmp_path: Path) -> None:
    one, other = two(tmp_path)
    here = Memory.open(one.root, config=replace(one.store.config, sessions_place="bank"), now=lambda: NOON)
    here.flush(transcript())
    here.remote.sync()
    there = Memory.open(other.root, now=lambda: NOON)
    there.remote.sync()
    assert there.sessions.get(ID).turns == here.sessions.get(ID).turns and in_state(there) == []
    hits = there.search("how long does the deploy take").hits
    assert any(item.record == "session" for hit in hits for item in (hit.item, *hit.folded))


def test_from_a_strangers_bank_the_place_does_not_count(tmp_path: Path) -> None:
    bank = opened(tmp_path / "bank").store.bank
    settings = bank.root / "ua-memory.toml"
    settings.write_text(settings.read_text() + '\n[sessions]\nplace = "bank"\n')
    memory = Memory.open(bank.root, now=lambda: NOON)
    assert memory.config.sessions_place == "state" and "sessions.place" in str(untrusted(memory.config))


def test_a_password_that_was_asked_for_is_written_nowhere(memory: Memory) -> None:
    flusher = memory.conversations.flusher()
    flusher.queue_turns(SHOP, [turn(1, "What is the password of staging?", "assistant")], None, is_open=True)
    flusher.queue_turns(SHOP, [turn(2, "wintergreen22"), turn(3, "Thanks.", "assistant")], None, is_open=True)
    state = memory.store.bank.state
    texts = [path.read_bytes() for path in state.rglob("*") if path.is_file()]
    assert any(b"password of staging" in text for text in texts)
    assert not any(b"wintergreen22" in text for text in texts)
