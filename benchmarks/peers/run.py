"""ua-memory beside other tools: the same conversations, the same questions, the same embedding model.

    make peers ARGS="[--in DIR] [--tools NAME,…] [--sample N] [--rounds N] [FILE…]"

FILE is a data set in a format of docs/bench.md; without one, the talks in benchmarks/data, which were made up
here in five languages, with the questions of questions.tsv. Each tool is installed into DIR (build/peers) by
pip or npm, at the version that tools.py names, into an environment of its own. Needed: npm, Python 3.11 and
3.12, the package registries, 5 GB. No model is downloaded, from a hub or by a tool. Linux only. What does not
run has a row that says why, and the others go on.

  R@2000t   the share of a question's evidence in the results' text up to 2,000 tokens (characters / 4): a
            turn counts if all of it is there; and the same for the lines that results name, read in full
  index     processor seconds for all conversations, the embedding by the shared model included
  cold      one question in a process of its own: its wall time divided by ua-memory's in the same round,
            processor seconds, and its largest process
  warm      one question to a process that stays: processor time, and what the processes hold, without the
            shared model, which only ua-memory has inside
  sent      what was sent to a language model; none is used, so it must be nothing

Figures go to DIR/figures.json after each tool; the table of docs/compare.md is printed at the end, and by
`--table` without measuring.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from processes import Cost, Failed, Server, fetch, run
from tools import TOOLS, Found, Tool

from ua_memory import bench

HERE = Path(__file__).parent
BUDGET = 2000
FIRST = datetime(2026, 1, 5, 9, 30)


@dataclass(slots=True)
class Talk:
    """A conversation, the bank that was made of it, and the turns as they can be found in a text."""

    dialogue: bench.Dialogue
    bank: Path
    questions: Sequence[bench.BenchQuestion]
    plain: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, dialogue: bench.Dialogue, folder: Path, sample: int) -> Talk:
        bank = folder / re.sub(r"\W+", "-", dialogue.name)
        asked = [one for one in dialogue.questions if not one.adversarial]
        if sample and len(asked) > sample:
            asked = [asked[int(i * len(asked) / sample)] for i in range(sample)]
        return cls(dialogue, bank, asked, {turn.id: bare(turn.line) for turn in dialogue.turns})

    def write(self) -> None:
        """Anew for each tool: some write into the files that they index."""
        shutil.rmtree(self.bank, ignore_errors=True)
        self.bank.mkdir(parents=True)
        bench.write_bank(self.dialogue, self.bank)

    def recall(self, question: bench.BenchQuestion, texts: Iterable[str]) -> float:
        """The share of the evidence in what fits the budget."""
        spent, held = 0, []
        for text in texts:
            spent += math.ceil(len(text) / 4)
            if spent > BUDGET:
                break
            held.append(bare(text))
        found = sum(any(self.plain[turn] in text for text in held) for turn in question.evidence)
        return found / len(question.evidence)

    def named(self, result: Found) -> str:
        """The lines that a result points to, or its text if it points to none."""
        if not result.path:
            return result.text
        rows = (self.bank / result.path).read_text("utf-8").splitlines()
        return "\n".join(rows[max(0, result.first - 1) : result.last])


def bare(text: str) -> str:
    """Letters and digits alone: tools differ in marks and white space."""
    return re.sub(r"[\W_]+", "", text).lower()


def made_up() -> bench.Dialogue:
    """The made-up talks, one a week, each line a turn; and what is asked of them."""
    sessions: list[bench.BenchSession] = []
    turns: dict[str, list[bench.BenchTurn]] = {}
    who = ""
    for number, row in enumerate((HERE.parent / "data/worth_talks.txt").read_text("utf-8").splitlines()):
        mark, _, text = row.partition(" ")
        if mark == "=":
            turns[text.split()[0]] = []
        elif mark in ("P", "A"):
            who = {"P": "Person", "A": "Assistant"}[mark]
        elif mark in ("+", "-"):
            turns[list(turns)[-1]].append(bench.BenchTurn(str(number), who, text))
    for week, (name, said) in enumerate(turns.items()):
        sessions.append(bench.BenchSession(name, FIRST + timedelta(weeks=week), tuple(said)))
    lines = [turn for session in sessions for turn in session.turns]
    questions = []
    for row in (HERE / "questions.tsv").read_text("utf-8").splitlines()[1:]:
        text, *begun = row.split("\t")
        evidence = [next(turn.id for turn in lines if turn.text.startswith(start)) for start in begun]
        questions.append(bench.BenchQuestion(text, frozenset(evidence), "made up"))
    return bench.Dialogue("talks", tuple(sessions), tuple(questions))


class Measured:
    """One tool, all conversations."""

    def __init__(self, tool: Tool, endpoint: Server, talks: Sequence[Talk], place: Path) -> None:
        self.tool, self.endpoint, self.talks, self.place = tool, endpoint, talks, place
        self.figures: dict[str, Any] = {"version": tool.version, "note": tool.note}

    def index(self) -> None:
        costs = []
        for talk in self.talks:
            talk.write()
            self._use(talk, anew=True)
            costs.append(self._counted(self.tool.index))
        self.figures["index_cpu"] = sum(cost.cpu for cost in costs)
        self.figures["index_peak"] = max(cost.peak for cost in costs)

    def warm(self) -> None:
        shown, named, walls, sizes, spent, held = [], [], [], [], 0.0, 0.0
        for talk in self.talks:
            self._use(talk)
            try:
                self.tool.open()
                list(self.tool.ask("Is anybody there?"))
                before = self._cpu()
                for question in talk.questions:
                    start = time.perf_counter()
                    results = list(self.tool.ask(" ".join(question.text.split())))
                    walls.append(time.perf_counter() - start)
                    shown.append(talk.recall(question, (result.text for result in results)))
                    named.append(talk.recall(question, map(talk.named, results)))
                    sizes.append(sum(len(result.text) for result in results[:10]) / 4)
                spent += self._cpu() - before
                held = max(held, sum(server.memory() for server in self.tool.servers()))
            finally:
                for server in self.tool.servers():
                    server.stop()
        self.figures |= {
            "questions": len(walls), "recall": statistics.fmean(shown),
            "recall_named": statistics.fmean(named),
            "tokens_of_ten": statistics.fmean(sizes), "warm_cpu": spent / len(walls),
            "warm_wall": statistics.median(walls), "held": held,
        }  # fmt: skip

    def cold(self, question: str) -> Cost | None:
        """One question of the first conversation, whose index is there."""
        self._use(self.talks[0])
        argv = self.tool.cold(question)
        return self._counted(lambda: run(argv, self.tool.env)[1]) if argv else None

    def _cpu(self) -> float:
        return sum(server.cpu() for server in (*self.tool.servers(), self.endpoint))

    def _use(self, talk: Talk, anew: bool = False) -> None:
        place = self.place / type(self.tool).__name__.lower() / talk.bank.name
        if anew:
            shutil.rmtree(place, ignore_errors=True)
        self.tool.use(talk.bank, place)

    def _counted(self, work: Callable[[], Cost]) -> Cost:
        """What it costs, what the shared model spends on it included."""
        before = self.endpoint.cpu()
        cost = work()
        return Cost(cost.wall, cost.cpu + self.endpoint.cpu() - before, cost.peak)


def measured(tool: Tool, ours: Measured | None, at: Measured, rounds: int) -> dict[str, Any]:
    """All figures of one tool; the cold questions in turn with ua-memory's."""
    at.index()
    at.warm()
    pairs = []
    for number in range(rounds + 1):
        asked = " ".join(at.talks[0].questions[number % len(at.talks[0].questions)].text.split())
        theirs, mine = at.cold(asked), (ours or at).cold(asked)
        if theirs is None or mine is None:
            return at.figures
        if number:  # the first fills the caches of the system
            pairs.append((theirs, mine))
    at.figures |= {
        "cold_ratio": statistics.median(theirs.wall / mine.wall for theirs, mine in pairs),
        "cold_wall": statistics.median(theirs.wall for theirs, _ in pairs),
        "cold_cpu": statistics.median(theirs.cpu for theirs, _ in pairs),
        "cold_peak": statistics.median(theirs.peak for theirs, _ in pairs),
    }
    return at.figures


def table(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """As docs/compare.md has it."""
    rows = [
        "| tool | R@2000t | lines read in full | tokens in ten results | index, CPU s "
        "| cold: ratio / CPU s / MB | warm: CPU ms / MB |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, one in sorted(figures.items(), key=lambda pair: -pair[1].get("recall", -1)):
        if "failed" in one:
            why = " ".join(one["failed"].replace("|", "/").split())
            rows.append(f"| {name} {one['version']} | did not run: {why} |||||||")
            continue
        cold = "–"
        if "cold_ratio" in one:
            cold = f"{one['cold_ratio']:.1f} × / {one['cold_cpu']:.1f} / {one['cold_peak']:.0f}"
        cells = (
            f"{name} {one['version']}", f"{100 * one['recall']:.1f}", f"{100 * one['recall_named']:.1f}",
            f"{one['tokens_of_ten']:.0f}", f"{one['index_cpu']:.0f}", cold,
            f"{1000 * one['warm_cpu']:.0f} / {one['held']:.0f}",
        )  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument(
        "--in",
        dest="home",
        type=Path,
        metavar="DIR",
        default=HERE.parents[1] / "build/peers",
        help="for environments, banks, figures",
    )
    parser.add_argument("--tools", default="", help="only these, by name, with commas")
    parser.add_argument("--sample", type=int, default=0, help="at most so many questions a conversation")
    parser.add_argument("--rounds", type=int, default=3, help="cold questions")
    parser.add_argument(
        "--table", action="store_true", help="print the figures that are there, and measure nothing"
    )
    return parser.parse_args()


def main() -> None:
    args = arguments()
    home = args.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o711)  # a database that does not run as root reads its environment in there
    kept = home / "figures.json"
    figures: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    if args.table:
        return print(table(figures))
    dialogues = [one for file in args.files for one in bench.read(file)] if args.files else [made_up()]
    talks = [Talk.made(one, home / "banks", args.sample) for one in dialogues if one.questions]
    chosen = [tool for tool in TOOLS if not args.tools or tool.name in args.tools.split(",")]
    (home / "home").mkdir(exist_ok=True)
    endpoint = Server([sys.executable, str(HERE / "endpoint.py")], {**os.environ, "HOME": str(home / "home")})
    assert endpoint.process.stdout is not None
    url = endpoint.process.stdout.readline().strip()
    ours: Measured | None = None
    try:
        for kind in (TOOLS[0], *(one for one in chosen if one is not TOOLS[0])):
            tool = kind(home / "environments", url)
            at = Measured(tool, endpoint, talks, home / "places")
            try:
                tool.installed()
                if kind is TOOLS[0] and kind not in chosen:
                    at.index()
                else:
                    figures[kind.name] = measured(tool, ours, at, args.rounds)
            except Exception as failed:  # whatever it was: the row says it, and the next tool has its turn
                why = str(failed) if isinstance(failed, Failed) else repr(failed)
                figures[kind.name] = {"version": kind.version, "failed": why, "note": kind.note}
            ours = ours or at
            kept.write_text(json.dumps(figures, indent=1) + "\n")
            print(kind.name, json.dumps(figures.get(kind.name)), flush=True)
        print(
            table(figures), f"sent to the endpoint: {fetch(url.removesuffix('/v1') + '/spent')}", sep="\n\n"
        )
    finally:
        endpoint.stop()


if __name__ == "__main__":
    main()
