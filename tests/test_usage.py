"""The usage ledger and the limits that stand on it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from ua_memory.errors import BudgetSpent, CannotWrite, Malformed
from ua_memory.llm.ledger import Ledger, Limits, Meter
from ua_memory.llm.model import TokenUsage as Usage
from ua_memory.llm.model import is_local, price
from ua_memory.text.wording import dollars

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SONNET = "claude-sonnet-5-5"
WORST = Usage(cache_write=1000, output=1000)


class Clock:
    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


def spend(
    meter: Meter, usage: Usage, purpose: str = "flush", model: str = SONNET, free: bool = False
) -> None:
    entry = meter.reserve(purpose, model, WORST, free=free)
    meter.record_usage(entry, model, usage, failed=False, request="req_1")


def lines(ledger: Ledger) -> list[str]:
    return ledger.file.read_text().splitlines()


# -- prices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "usage", "usd"),
    [
        (SONNET, Usage(input=1_000_000), 2),
        (SONNET, Usage(output=1_000_000), 10),
        (SONNET, Usage(cache_read=1_000_000), 0.1),
        (SONNET, Usage(cache_write=1_000_000), 2.5),
        ("claude-haiku-5-5", Usage(input=100_000, output=100_000), 0.06),
        ("claude-haiku-5-5", Usage(input=1, cache_read=100_000), 0.0050005),
        ("claude-haiku-4-5-20251001", Usage(output=1_000_000), 5),
    ],
)
def test_price(model: str, usage: Usage, usd: float) -> None:
    known = price(model)
    assert known and known.of(usage) == pytest.approx(usd)


def test_an_unknown_model_has_no_price() -> None:
    assert price("qwen3:4b") is None and price("claude-sonnet-9") is None


def test_who_sends_no_bill() -> None:
    for url in (
        "http://localhost:1",
        "http://127.0.0.1:1/v1",
        "http://[::1]:1",
        "http://10.0.0.2",
        "http://a.local",
    ):
        assert is_local(url)
    for url in ("https://api.anthropic.com", "https://8.8.8.8", "http://localhost.evil.com", "nonsense"):
        assert not is_local(url)


# -- the ledger ----------------------------------------------------------------------------------------


def test_each_request_is_two_lines_and_one_entry(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "local")
    assert ledger.spent().total.requests == 0
    meter = Meter(ledger, Limits(), Clock())
    spend(meter, Usage(100, 20, 300, 40))
    first, second = map(json.loads, lines(ledger))
    assert (first["state"], first["out"], second["state"], second["out"]) == ("asked", 1000, "answered", 20)
    assert second == {
        "at": "2026-11-21T12:00:00.000+00:00", "id": first["id"], "state": "answered", "run": meter.run,
        "purpose": "flush", "model": SONNET, "in": 100, "out": 20, "cache_read": 300, "cache_write": 40,
        "usd": pytest.approx(0.00053), "counted": pytest.approx(0.00053),
        "request": "req_1",
    }  # fmt: skip
    (entry,) = ledger.entries()
    assert (entry.usage, entry.at, entry.state) == (Usage(100, 20, 300, 40), NOON, "answered")
    assert meter.usage == entry.usage and meter.counted == pytest.approx(0.00053)


def test_totals_by_purpose_day_and_model(tmp_path: Path) -> None:
    ledger, clock = Ledger(tmp_path), Clock()
    meter = Meter(ledger, Limits(), clock)
    spend(meter, Usage(input=1000))
    spend(meter, Usage(output=100), "retain")
    clock.at += timedelta(days=1)
    spend(meter, Usage(input=5), "flush", "made-up")
    meter.reserve("flush", SONNET, WORST)
    meter.record_usage(meter.reserve("flush", SONNET, WORST), "", Usage(input=1), failed=True)
    spent = ledger.spent()
    total = spent.total
    assert (total.requests, total.unpriced, total.open, total.failed) == (5, 1, 1, 1)
    assert total.usage == Usage(1006, 1100, 0, 1000)
    assert {name: each.requests for name, each in spent.by_purpose.items()} == {"flush": 4, "retain": 1}
    assert {day: each.requests for day, each in spent.by_day.items()} == {"2026-11-21": 2, "2026-11-22": 3}
    assert set(spent.by_model) == {SONNET, "made-up"}
    assert ledger.spent(clock.at).total.requests == 3


def test_half_lines_and_nuls_are_passed_over(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    spend(Meter(ledger, Limits(), Clock()), Usage(input=10))
    whole = ledger.file.read_bytes()
    second = whole.splitlines(keepends=True)[1]
    for cut in range(1, len(second)):
        ledger.file.write_bytes(whole[: len(whole) - cut])
        (entry,) = ledger.entries()
        expected = "answered" if cut == 1 else "asked"
        assert entry.state == expected, "the worst case stands where the second line is lost"
    spend(Meter(ledger, Limits(), Clock()), Usage(input=10))
    assert [entry.state for entry in ledger.entries()] == ["asked", "answered"]
    ledger.file.write_bytes(whole + b"\0" * 4096)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "damage", [b"hello\n", b"\xff\xfe\n", b'{"at":"2026-11-21T12:00:00"}\n', b'{"at":"x"}\n']
)
def test_a_ledger_that_is_none_stops_every_request(tmp_path: Path, damage: bytes) -> None:
    ledger = Ledger(tmp_path)
    meter = Meter(ledger, Limits(), Clock())
    spend(meter, Usage(input=10))
    with ledger.file.open("ab") as file:
        file.write(damage)
    with pytest.raises(Malformed, match="no model is called: line 3") as raised:
        meter.reserve("flush", SONNET, WORST)
    assert raised.value.where == str(ledger.file) and raised.value.hint


def test_a_ledger_that_cannot_be_read_or_written_stops_every_request(tmp_path: Path) -> None:
    (tmp_path / "a" / "usage.jsonl").mkdir(parents=True)
    with pytest.raises(Malformed):
        Meter(Ledger(tmp_path / "a"), Limits(), Clock()).reserve("flush", SONNET, WORST)
    (tmp_path / "b").write_text("a file")
    with pytest.raises(CannotWrite):
        Meter(Ledger(tmp_path / "b"), Limits(), Clock()).reserve("flush", SONNET, WORST)


def test_it_is_set_aside_by_size_and_year_and_bounded(tmp_path: Path) -> None:
    ledger, clock = Ledger(tmp_path, rotate_bytes=2000, keep=3), Clock()
    meter = Meter(ledger, Limits(), clock)
    for _ in range(20):
        spend(meter, Usage(input=10))
    clock.at = datetime(2027, 1, 1, tzinfo=UTC)
    spend(meter, Usage(input=10))
    names = sorted(file.name for file in tmp_path.glob("usage-*"))
    assert len(names) == 3 and names[-1].startswith("usage-2026-00")
    assert all(json.loads(line)["at"].startswith("2027") for line in lines(ledger))
    assert all(file.stat().st_size < 3000 for file in tmp_path.iterdir())
    spent = ledger.spent()
    assert 5 < spent.total.requests < 21 and spent.by_day["2027-01-01"].requests == 1


def test_todays_requests_count_after_the_file_was_set_aside(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, rotate_bytes=700)
    meter = Meter(ledger, Limits(), Clock())
    for _ in range(4):
        spend(meter, Usage(input=100))
    assert len(list(tmp_path.glob("usage-*"))) > 1
    tight = Meter(ledger, Limits(day_tokens=2300), meter._now)
    with pytest.raises(BudgetSpent, match="400 tokens of 2,300 tokens are used today"):
        tight.reserve("flush", SONNET, WORST)


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "hint"),
    [
        (Limits(run_tokens=2999), "raise limits.run_tokens"),
        (Limits(run_usd=0.0144), "raise limits.run_usd"),
        (Limits(day_tokens=2999), "raise limits.day_tokens, or go on tomorrow"),
        (Limits(day_usd=0.0144), "raise limits.day_usd, or go on tomorrow"),
        (Limits(day_usd=0), "raise limits.day_usd, or go on tomorrow"),
    ],
)
def test_the_worst_case_must_fit(tmp_path: Path, limits: Limits, hint: str) -> None:
    ledger = Ledger(tmp_path)
    meter = Meter(ledger, limits, Clock())
    if limits.day_usd:
        spend(meter, Usage(input=1000))  # 0.002; the worst case is 0.0125
    before = ledger.file.read_bytes() if ledger.file.exists() else b""
    with pytest.raises(BudgetSpent) as raised:
        meter.reserve("flush", SONNET, WORST)
    assert raised.value.hint == hint
    assert before == (ledger.file.read_bytes() if ledger.file.exists() else b"")


def test_a_killed_request_counts_as_its_worst_case_and_a_day_ends(tmp_path: Path) -> None:
    ledger, clock = Ledger(tmp_path), Clock(datetime(2026, 11, 21, 23, tzinfo=timezone(timedelta(hours=2))))
    limits = Limits(day_tokens=3000)
    Meter(ledger, limits, clock).reserve("flush", SONNET, WORST)
    with pytest.raises(BudgetSpent):
        Meter(ledger, limits, clock).reserve("flush", SONNET, WORST)
    clock.at += timedelta(hours=2)
    Meter(ledger, limits, clock).reserve("flush", SONNET, WORST)


def test_a_model_without_a_price(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    meter = Meter(ledger, Limits(run_usd=0.06), Clock())
    spend(meter, Usage(input=1_000_000), model="qwen3:4b", free=True)
    assert meter.counted == 0 and ledger.entries()[0].usd is None
    with pytest.raises(BudgetSpent, match=r"\$0\.06"):  # as the dearest: 0.0125 + 0.05
        meter.reserve("flush", "claude-sonnet-9", WORST)


def test_processes_do_not_pass_a_limit_together(tmp_path: Path) -> None:
    code = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from ua_memory.errors import BudgetSpent
from ua_memory.llm.ledger import Ledger, Limits, Meter; from ua_memory.llm.model import TokenUsage as Usage
now = datetime(2026, 11, 21, 12, tzinfo=UTC)
meter = Meter(Ledger(Path(sys.argv[1])), Limits(day_tokens=20_000), lambda: now)
try:
    for _ in range(20):
        meter.reserve("flush", "claude-sonnet-5-5", Usage(cache_write=1000, output=1000))
except BudgetSpent:
    print("spent")
"""
    root = Path(__file__).parent.parent
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], cwd=root, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0].strip() for process in started] == ["spent"] * 3
    assert len(Ledger(tmp_path).entries()) == 10


def test_sums_below_a_cent_are_seen() -> None:
    said = [dollars(each) for each in (0, 0.0004, 0.00123, 0.000004, 0.01, 12.5, 1400)]
    assert said == ["$0.00", "$0.0004", "$0.0012", "$0.000004", "$0.01", "$12.50", "$1,400.00"]


def test_days_are_told_by_purpose_and_drawn(tmp_path: Path) -> None:
    clock = [datetime(2026, 11, 21, 9, tzinfo=UTC)]
    meter = Meter(Ledger(tmp_path), Limits(), lambda: clock[0])
    for day, purpose in ((22, "reflect"), (20, "flush"), (22, "flush")):
        clock[0] = clock[0].replace(day=day)
        used = Usage(1000, 100)
        entry = meter.reserve(purpose, "claude-sonnet-5-5", used)
        meter.record_usage(entry, "claude-sonnet-5-5", used, failed=False)
    spent = Ledger(tmp_path).spent()
    assert list(spent.by_day) == ["2026-11-20", "2026-11-22"]
    assert set(spent.by_both["2026-11-22"]) == {"reflect", "flush"}
    assert sum(one.usd for day in spent.by_both.values() for one in day.values()) == spent.total.usd
    pytest.importorskip("matplotlib")
    from ua_memory.bench import draw_cost

    draw_cost(spent, tmp_path / "cost.png")
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
