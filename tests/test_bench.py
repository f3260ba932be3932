"""The scorer: figures worked out by hand, the formats it reads, and the scorer that it must agree with."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import re
import subprocess
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from terminal import Shell, new_shell
from test_cli_json import agrees

from ua_memory import bench
from ua_memory.bench import (
    BM25,
    BUDGETS,
    Dialogue,
    Grep,
    OwnRanking,
    QuestionScore,
    _sampled,
    drawable,
    measure,
    read,
    write_bank,
)
from ua_memory.bench import BenchQuestion as Question
from ua_memory.bench import BenchSession as Session
from ua_memory.bench import BenchTurn as Turn
from ua_memory.errors import CannotWrite, Malformed, NotFound, Usage
from ua_memory.memory import Memory

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).parents[2] / "shared")
DATA = sorted((SHARED / "data" / "recall").glob("*.json"))
TOOL = SHARED / "tools" / "recall_score.py"
SAMPLE = Path(__file__).parent.parent / "examples" / "recall.jsonl"
shared = [
    pytest.mark.shared,
    pytest.mark.skipif(not (DATA and TOOL.is_file()), reason="the shared conversations are not here"),
]


def talk(*texts: str, questions: tuple[Question, ...] = ()) -> Dialogue:
    turns = tuple(Turn(str(n), "Ada", text) for n, text in enumerate(texts))
    return Dialogue("talk", (Session("s", datetime(2026, 3, 2, 9, 5), turns),), questions)


# -- figures -------------------------------------------------------------------------------------------

SESSIONS = {"a": "1", "b": "1", "c": "2", "d": "3", "e": "3"}
SIZES = {"a": 400, "b": 500, "c": 1100, "d": 1, "e": 10}


def scored(found: list[str], gold: str) -> dict[str, float]:
    return QuestionScore([tuple(one) for one in found], frozenset(gold), SESSIONS, SIZES).figures()


def test_figures_worked_out_by_hand() -> None:
    figures = scored(["b", "", "ab", "c", "d", "e"], "ae")
    assert (figures["R@5"], figures["hit@5"], figures["all@5"]) == (0.5, 1.0, 0.0)
    assert (figures["R@10"], figures["hit@10"], figures["all@10"]) == (1.0, 1.0, 1.0)
    # b 500, a 400 (b is not paid for twice), c 1100: just 2,000; d is over, and so is all after it.
    assert (figures["tokens@5"], figures["tokens@10"], figures["tokens@2000t"]) == (2001, 2011, 2000)
    assert (figures["R@2000t"], figures["all@2000t"]) == (0.5, 0.0)
    assert (figures["ses@5"], figures["sesall@5"]) == (1.0, 1.0)
    assert figures["MRR@10"] == 1 / 3
    ideal = 1 + 1 / math.log2(3)
    assert figures["nDCG@10"] == pytest.approx((1 / math.log2(4) + 1 / math.log2(7)) / ideal)


def test_nothing_found_is_nothing_right() -> None:
    assert set(scored([], "a").values()) == {0.0}
    missed = scored(["c"], "a")
    assert {name for name, value in missed.items() if value} == {name for name in missed if "tokens" in name}


def test_the_curve_rises_to_what_was_found() -> None:
    curve = QuestionScore([("d",), ("a",), ("e",)], frozenset("ae"), SESSIONS, SIZES).curve()
    assert dict(zip(BUDGETS, curve, strict=True)) == {b: 0.0 if b < 401 else 1.0 for b in BUDGETS}


def test_adversarial_questions_are_kept_apart() -> None:
    file = [
        talk(
            "The heron stands still.",
            "Otters hold hands.",
            questions=(
                Question("What do otters do?", frozenset("1"), "plain"),
                Question("Does the heron hold hands?", frozenset("0"), "adversarial"),
            ),
        )
    ]
    report = measure([file], now=lambda: datetime(2026, 3, 3, tzinfo=UTC))
    for ranking in report.rankings:
        rows = {row.name: (row.n, row.figures["R@5"]) for row in ranking.rows}
        assert rows == {"all": (1, 100.0), "adversarial": (1, 100.0), "plain": (1, 100.0)}
        assert ranking.curve[-1] == (BUDGETS[-1], 100.0) and ranking.ms > 0
    assert (report.questions, report.turns, report.notes) == (2, 2, ())


def test_a_sample_is_spread_over_the_file() -> None:
    ask = [Question(str(n), frozenset("0"), "x") for n in range(10)]
    file = [talk("a", questions=tuple(ask[:4])), talk("b"), talk("c", questions=tuple(ask[4:]))]
    sampled = _sampled(file, 4)
    assert [[q.text for q in one.questions] for one in sampled] == [["0", "2"], ["5", "7"]]
    assert sum(len(one.questions) for one in _sampled(file, None)) == 10


def test_without_evidence_there_is_nothing_to_score() -> None:
    with pytest.raises(Malformed, match="no question"):
        measure([[talk("a")]])


# -- rankings ------------------------------------------------------------------------------------------


def asked(text: str) -> list[Question]:
    return [Question(text, frozenset("0"), "x")]


def test_grep_counts_words_also_inside_others() -> None:
    grep = Grep(talk("cats and dogs", "the catalogue", "dog", "nothing", "a cat, a dog"))
    assert grep.ask(asked("Cat dog?"), 10) == [[("0",), ("4",), ("1",), ("2",)]]
    assert grep.ask(asked("Cat dog?"), 2) == [[("0",), ("4",)]]
    assert grep.ask(asked("?!"), 10) == [[]]


def test_bm25_worked_out_by_hand() -> None:
    bm25 = BM25(talk("otter otter heron", "heron", "otter fox fox fox fox fox"))
    assert bm25.ask(asked("otter"), 10) == [[("0",), ("2",)]]
    assert bm25.ask(asked("heron ada"), 10) == [[("1",), ("0",), ("2",)]]
    assert bm25.ask(asked("wolf"), 10) == [[]]
    # The speaker's name is a word of each line: 4, 2 and 7 of them, 13/3 on the average.
    share = dict(bm25.postings["otter"])
    assert share[0] == pytest.approx(2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / (13 / 3))))


def test_a_question_is_asked_at_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, then = datetime(2027, 1, 1, tzinfo=UTC), datetime(2026, 4, 2, 12, tzinfo=UTC)
    ours = OwnRanking(talk("Otters hold hands.", "Herons stand still."), tmp_path / "bank", lambda: clock)
    seen, search_many = [], ours.memory.search_many

    def noted(texts: list[str], **more: Any) -> Any:
        seen.append((texts, ours.memory.store.now()))
        return search_many(texts, by_words=True, **more)

    monkeypatch.setattr(ours.memory, "search_many", noted)
    questions = [
        Question("otters", frozenset("0"), "x"),
        Question("herons", frozenset("1"), "x", now=then),
        Question("hands\nand", frozenset("0"), "x"),
    ]
    found = ours.ask(questions, 1)
    ours.memory.close()
    assert seen == [(["otters", "hands and"], clock), (["herons"], then)]
    assert found == [[("0",)], [("1",)], [("0",)]]


# -- formats -------------------------------------------------------------------------------------------


def saved(folder: Path, value: Any, name: str = "data.json") -> Path:
    file = folder / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return file


def test_locomo_as_published(tmp_path: Path) -> None:
    conversation = {
        "speaker_a": "Ada",
        "session_10_date_time": "12:05 am on 1 January, 2024",
        "session_10": [{"speaker": "Ada", "dia_id": "D10:1", "text": "Happy new year!"}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Bo", "dia_id": "D2:1", "text": "Look at this. ", "blip_caption": "a red kite"},
            {"speaker": "Ada", "dia_id": "D2:2", "text": "Lovely."},
        ],
    }
    qa = [
        {"question": "Who flies kites?", "answer": "Bo", "evidence": ["D2:01; D:2:2"], "category": 1},
        {"question": "When?", "answer": 2024, "evidence": ["D10:1", "D"], "category": 2},
        {"question": "Did Bo wish a happy new year?", "evidence": ["D10:1"], "category": 5},
        {"question": "Is Bo kind?", "evidence": [], "category": 3},
        {"question": "Is Bo old?", "evidence": ["D99:1"], "category": 3},
    ]
    (one,) = read(saved(tmp_path, [{"sample_id": "conv-1", "qa": qa, "conversation": conversation}]))
    assert [(s.id, s.when) for s in one.sessions] == [
        ("2", datetime(2023, 5, 8, 13, 56)),
        ("10", datetime(2024, 1, 1, 0, 5)),
    ]
    assert one.turns[0].text == "Look at this. [shares a photo: a red kite]"
    assert [(q.evidence, q.category, q.adversarial) for q in one.questions] == [
        ({"D2:1", "D2:2"}, "1 multi-hop", False),
        ({"D10:1"}, "2 temporal", False),
        ({"D10:1"}, "5 adversarial", True),
    ]
    assert (one.name, one.unanswered) == ("conv-1", 2)


def test_longmemeval(tmp_path: Path) -> None:
    question = {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "Where do I live?",
        "answer": "Porto",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["late", "early", "late"],
        "haystack_dates": ["2023/05/20 (Sat) 02:36", "2023/04/10 (Mon) 17:50", "2023/05/21 (Sun) 08:00"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I moved to Porto.", "has_answer": True},
                {"role": "assistant", "content": "Lovely!", "has_answer": False},
            ],
            [{"role": "user", "content": "I live in Braga.\n\nIt rains."}],
            [{"role": "user", "content": "Good morning."}],
        ],
        "answer_session_ids": ["late"],
    }
    abstains = {**question, "question_id": "q2_abs"}
    one, other = read(saved(tmp_path, [question, abstains]))
    assert [s.id for s in one.sessions] == ["early", "late", "late"]
    (asks,) = one.questions
    assert (asks.evidence, asks.category, asks.now) == (
        {"0:0"},
        "knowledge-update",
        datetime(2023, 6, 1, 10),
    )
    assert one.session_of["0:0"] == "late" and one.turns[0].line == "- **user**: I live in Braga. It rains."
    assert (other.questions, other.unanswered) == ((), 1)


def test_the_sample_of_the_neutral_format(tmp_path: Path) -> None:
    (one,) = read(SAMPLE)
    assert [s.id for s in one.sessions] == ["monday", "standup", "2026-04-01"]
    assert [q.adversarial for q in one.questions] == [False] * 5 + [True]
    assert one.questions[4].now == datetime(2026, 4, 2) and one.turns[-1].line.startswith("- We pay")
    where = write_bank(one, tmp_path)
    for (path, line), turn in where.items():
        text = (tmp_path / path).read_text("utf-8").split("\n")[line - 1]
        assert text == next(t.line for t in one.turns if t.id == turn)
    assert len(where) == 8


def test_a_session_past_midnight_is_one_session_in_two_logs(tmp_path: Path) -> None:
    items = [
        {"id": 1, "session": "x", "when": "2026-03-02T23:59", "who": "Ada", "text": "late"},
        {"id": 2, "session": "x", "when": "2026-03-03T00:01", "who": "Ada", "text": "later"},
        {"question": "when?", "evidence": [2]},
    ]
    (one,) = read(saved(tmp_path, "\n".join(map(json.dumps, items)), "x.jsonl"))
    assert set(one.session_of.values()) == {"x"}
    assert {path for path, _ in write_bank(one, tmp_path)} == {"memory/2026-03-02.md", "memory/2026-03-03.md"}


ITEM = '{"id": "1", "when": "2026-03-02", "text": "a"}'


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (f'{ITEM}\n{{"question": "?", "evidence": ["2"]}}', ":2", "no item has the id '2'"),
        (f"{ITEM}\n{ITEM}", ":2", "occurs twice"),
        (f'{ITEM}\n{{"id": "2", "text": "b"}}', ":2", "no 'when'"),
        (f'{ITEM}\n{{"id": "2", "when": "May", "text": "b"}}', ":2", "isoformat"),
        (f'{ITEM}\n{{"question": "?", "evidence": "1"}}', ":2", "list of ids"),
        (f"{ITEM}\n\n[1]", ":3", "indices"),
        (f"{ITEM}\nwords", ":2", "Expecting value"),
        ("", "", "not JSON"),
        ('[{"haystack_sessions": []}]', "", "no 'haystack_session_ids'"),
        ('[{"session_1": [], "session_1_date_time": "noon", "qa": []}]', "", "not a valid time: 'noon'"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, where: str, what: str) -> None:
    file = saved(tmp_path, text)
    with pytest.raises(Malformed, match=what) as error:
        read(file)
    assert error.value.where == f"{file}{where}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read(tmp_path / "none.json")
    with pytest.raises(NotFound):
        read(tmp_path)


# -- the command ---------------------------------------------------------------------------------------


def test_the_table_has_tokens_and_time_and_leaves_the_bank_alone(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in shell.home.rglob("*")}
    done = shell.ok("bench", "recall", str(SAMPLE), UA_MEMORY_CHROMA_URL="http://127.0.0.1:9")
    assert {path: path.stat().st_mtime_ns for path in shell.home.rglob("*")} == before
    lines = done.out.split("\n")
    assert lines[0].startswith("1 conversation, 8 turns, indexed in ") and done.err == ""
    heads = "R@5 tok R@10 tok R@20 tok R@2000t tok ses@5 nDCG MRR ms"
    assert " ".join(lines[2].split()) == heads
    assert lines[3] == "all, 5 questions"
    assert [line.split()[0] for line in lines[4:7]] == ["ua-memory", "bm25", "grep"]
    assert max(map(len, lines)) <= 80


def test_it_needs_no_bank(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    done = shell("bench", "recall", "none.jsonl")
    assert done.code == NotFound.exit_code and str(tmp_path / "none.jsonl") in done.err


def test_a_plot_that_cannot_be_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Usage, match=r"\.png"):
        drawable(tmp_path / "x.txt")
    with pytest.raises(CannotWrite):
        drawable(tmp_path / "none" / "x.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Usage) as error:
        drawable(tmp_path / "x.png")
    assert error.value.hint == "pip install 'ua-memory[plot]'"


@pytest.mark.slow
def test_the_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    shell = Shell(tmp_path, tmp_path)
    done = shell.ok("bench", "recall", str(SAMPLE), "--sample", "2", "--plot", "recall.svg")
    svg = (tmp_path / "recall.svg").read_text("utf-8")
    assert "<svg" in svg and f"plot: {tmp_path / 'recall.svg'}" in done.err


# -- the scorer it must agree with ---------------------------------------------------------------------


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("recall_score", TOOL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", DATA, ids=lambda file: file.stem)
class TestAgainstTheOtherScorer:
    pytestmark = shared

    def test_the_banks_are_equal(self, file: Path, tmp_path: Path) -> None:
        (ours,) = read(file)
        where = write_bank(ours, tmp_path / "ours")
        assert where == tool().write_bank(json.loads(file.read_text("utf-8")), tmp_path / "theirs")
        names = {path.relative_to(tmp_path / "ours") for path in (tmp_path / "ours").rglob("*.md")}
        assert names == {
            path.relative_to(tmp_path / "theirs") for path in (tmp_path / "theirs").rglob("*.md")
        }
        for name in names:
            assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()

    def test_figures_are_equal_question_by_question(self, file: Path, tmp_path: Path) -> None:
        data = json.loads(file.read_text("utf-8"))
        (ours,) = read(file)
        where = write_bank(ours, tmp_path)
        lines = [(path, line, turn) for (path, line), turn in where.items()]
        place = {turn: (path, line) for path, line, turn in lines}
        chance = random.Random(zlib.crc32(file.name.encode()))
        results, found = [], []
        for one, ranked in zip(ours.questions, BM25(ours).ask(ours.questions, 50), strict=True):
            starts = [place[turn] for (turn,) in ranked] + [place[turn] for turn in sorted(one.evidence)]
            chance.shuffle(starts)
            ends = [(path, line, line + chance.choice((0, 0, 0, 1, 7))) for path, line in starts]
            results.append([{"path": p, "startLine": a, "endLine": b} for p, a, b in ends])
            found.append([tuple(where[p, n] for n in range(a, b + 1) if (p, n) in where) for p, a, b in ends])
        sessions = {t["id"]: i for i, s in enumerate(data["sessions"]) for t in s["turns"]}
        sizes = {t.id: t.tokens for t in ours.turns}
        theirs = tool().score(data["questions"], results, where, sessions, sizes)
        for one, hits, (_, expected) in zip(ours.questions, found, theirs, strict=True):
            figures = QuestionScore(hits, one.evidence, ours.session_of, sizes).figures()
            assert {name: figures[name] for name in expected} == expected


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not (DATA and TOOL.is_file()), reason="the shared conversations are not here")
def test_the_whole_agrees_to_the_digit(tmp_path: Path) -> None:
    """Both over the same conversation, from the file to the figures printed."""
    command = tmp_path / "ua-memory"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ua_memory "$@"\n')
    command.chmod(0o755)
    env = {**os.environ, "UA_MEMORY_DAEMON": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, TOOL, DATA[-1], "--json", "--command", command]
    expected = json.loads(subprocess.run(argv, env=env, capture_output=True, check=True).stdout)
    printed = Shell(tmp_path, tmp_path).ok("bench", "recall", str(DATA[-1]), "--json").json
    rows = {row["name"]: row for row in printed["rankings"][0]["rows"]}
    names = {f"category {name[0]}": name for name in rows if name[0].isdigit()}
    assert len(names) > 2
    for name, figures in expected.items():
        if name not in ("ms/query", "category 5"):
            row = rows[names.get(name, name)]
            assert {key: row[key] for key in figures} == figures, name
    assert rows["adversarial"]["n"] == expected["category 5"]["n"]


# -- probes --------------------------------------------------------------------------------------------------


FACTS = ("Alice moved the API to Fly.io", "The spare key is with Oksana", "Boards are oak")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    def fill(shell: Shell) -> None:
        for text in FACTS:
            shell.ok("insert", text)

    return new_shell(tmp_path, "probes", fill)


def ids(shell: Shell) -> list[str]:
    return re.findall(r"\^([a-z2-7]{10})", (shell.cwd / "memory/2026-11-21.md").read_text())


def test_probes_are_added_and_asked_and_compared(shell: Shell) -> None:
    api, key, _ = ids(shell)
    done = shell.ok("bench", "probes", "--add", "who has the key?", f"^{key}", "--json").json
    agrees("bench probes --add", done)
    assert (shell.cwd / "probes.md").read_text() == f"# Probes\n\n- who has the key? → ^{key}\n"
    shell.ok(
        "bench",
        "probes",
        "--add",
        "where → is the API and its key",
        f"[[2026-11-21#^{api}]]",
        key,
    )
    assert (
        (shell.cwd / "probes.md").read_text().endswith(f"- where -> is the API and its key → ^{api} ^{key}\n")
    )
    first = shell.ok("bench", "probes", "--json").json
    agrees("bench probes", {**first, "last": {k: first[k] for k in ("when", "R@5", "R@10", "tokens", "ms")}})
    assert [one["ids"][0]["rank"] for one in first["probes"]] == [1, 1]
    assert first["last"] is None and first["gained"] == first["lost"] == []
    # a statement that the bank has no more is lost, and said to be missing
    log = shell.cwd / "memory/2026-11-21.md"
    log.write_text(log.read_text().replace(f"- {FACTS[1]} ^{key}\n", ""))
    again = shell("bench", "probes", "--json")
    assert again.code == 12 and again.json["lost"] == [3, 4] and again.json["last"]["R@10"] == first["R@10"]
    (found,) = again.json["probes"][0]["ids"]
    assert (found["rank"], found["was"], found["missing"]) == (None, 1, True)
    shell.ok("insert", f"{FACTS[1]} since May")
    log.write_text(re.sub(r"(since May) \^\w+", rf"\1 ^{key}", log.read_text()))
    told = shell.ok("bench", "probes").out
    assert "Gained: 2" in told and "✓ who has the key?" in told and "#1 (was not found)" in told


def test_probes_are_no_memory(shell: Shell) -> None:
    shell.write("probes.md", "# My probes\n\n- what are zeppelins made of → ^aaaaaaaaaa\n")
    assert "probes.md" not in shell.ok("search", "what are zeppelins made of", "--json").out
    assert (
        shell.ok("status", "--json").json["edited"] == []
        and not shell.ok("verify", "--json").json["problems"]
    )
    shell.ok("bench", "probes")
    record = (shell.cwd / ".git/ua-memory/local/probes.json").read_text()
    assert "zeppelin" not in record, "a record keeps no words"


def test_lines_of_probes(shell: Shell) -> None:
    api, *_ = ids(shell)
    text = f"""# Probes

Some prose → ^{api}

* with -> another arrow -> ^{api}, [[2026-11-21#^{api}]] ^bbbbbbbbbb
1. numbered → ^{api} (a remark)
- no id → nothing
- no arrow ^{api}
"""
    shell.write("probes.md", text)
    with Memory.open(shell.cwd) as memory:
        found, wrong = bench.Probes(memory).list()
    assert [(one.line, one.query, one.ids) for one in found] == [
        (5, "with -> another arrow", (api, "bbbbbbbbbb")),
        (6, "numbered", (api,)),
    ]
    assert wrong == ["probes.md:7: no ^id behind the arrow"]
    (shell.cwd / "probes.md").unlink()
    (shell.cwd / "probes.md").symlink_to("/etc/hostname")
    assert shell("bench", "probes").code == 2 and shell("bench", "probes", "--add", "x", f"^{api}").code == 2
    (shell.cwd / "probes.md").unlink()
    assert (
        shell("bench", "probes").code == 4 and shell("bench", "probes", "--add", "x", "^zzzzzzzzzz").code == 4
    )
    assert shell("bench", "probes", "--add", "x").code == 2 and shell("bench", "probes", f"^{api}").code == 2
    assert not (shell.cwd / "probes.md").exists()
