"""The comparison with other tools: what it counts, its data, its endpoint, and a run with ua-memory alone."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ua_memory import bench
from ua_memory.index.embedding import Embedder

PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
pytestmark = pytest.mark.skipif(not PEERS.exists(), reason="the benchmarks are not here")


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(PEERS))
    return importlib.import_module("run")


def talk(peers: ModuleType, folder: Path) -> bench.Dialogue:
    made = peers.Talk.made(bench.read(PEERS.parents[1] / "examples/recall.jsonl")[0], folder, 0)
    made.write()
    return made


def test_a_turn_counts_if_all_of_it_is_in_the_text(peers: ModuleType, tmp_path: Path) -> None:
    made = talk(peers, tmp_path)
    asked = next(one for one in made.questions if one.evidence == {"7"})
    whole = "**Ines**: Then I bring the cake, the carrot one everybody liked."
    assert made.recall(asked, [whole]) == 1
    assert made.recall(asked, [whole.replace("*", "").upper()]) == 1, "marks and case are the tool's own"
    assert made.recall(asked, [whole[:-10]]) == 0


def test_what_exceeds_the_budget_is_not_read(peers: ModuleType, tmp_path: Path) -> None:
    made = talk(peers, tmp_path)
    asked = next(one for one in made.questions if one.evidence == {"4", "6"})
    first = "Tomasz: The invoices move from Postgres 14 to 17 on Saturday night."
    second = "Tomasz: Me, and Farid as the second."
    assert made.recall(asked, [first, second]) == 1
    assert made.recall(asked, [first, "x" * 8000, second]) == 0.5


def test_named_lines_are_read_in_full(peers: ModuleType, tmp_path: Path) -> None:
    made = talk(peers, tmp_path)
    cut = peers.Found("Then I bring", "memory/2026-03-09.md", 8, 8)
    assert made.named(cut).endswith("carrot one everybody liked.")
    assert made.named(peers.Found("only this")) == "only this"


def test_the_made_up_questions_have_their_answers_in_the_talks(peers: ModuleType) -> None:
    made = peers.made_up()
    assert len(made.questions) == len((PEERS / "questions.tsv").read_text("utf-8").splitlines()) - 1
    assert len(made.turns) > 1000 and all(one.evidence <= set(made.session_of) for one in made.questions)


def test_the_table_says_what_did_not_run(peers: ModuleType) -> None:
    figures = {"recall": 0.5, "recall_named": 0.75, "tokens_of_ten": 321, "index_cpu": 2, "warm_cpu": 0.05}
    rows = peers.table({
        "one": {"version": "1.0", "held": 120, **figures},
        "two": {"version": "2.0", "failed": "needs\na | model"},
        "three": {"version": "3.0", "held": 80, **figures, "recall": 0.75},
    }).splitlines()  # fmt: skip
    assert rows[2].startswith("| three 3.0 | 75.0 |"), "the best first"
    assert rows[3] == "| one 1.0 | 50.0 | 75.0 | 321 | 2 | – | 50 / 120 |"
    assert rows[4] == "| two 2.0 | did not run: needs a / model |||||||"


def test_an_installation_that_was_cut_short_or_is_of_another_version_is_made_anew(
    peers: ModuleType, tmp_path: Path
) -> None:
    class Peer(peers.Tool):  # type: ignore[misc, name-defined]
        name, version, times = "peer", "1", 0

        def install(self) -> None:
            self.times += 1
            (self.home / "part").touch(exist_ok=False)
            if self.times == 1:
                raise OSError("the registry went away")

    peer = Peer(tmp_path, "")
    with pytest.raises(OSError, match="went away"):
        peer.installed()
    for version, times in (("1", 2), ("1", 2), ("2", 3)):
        peer.version = version
        peer.installed()
        assert peer.times == times


def test_what_answers_nothing_is_ended(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = importlib.import_module("processes")
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    monkeypatch.setattr(processes, "LONG", 0.2)
    env = {"HOME": str(tmp_path)}
    with pytest.raises(processes.Failed, match="exited -9"):
        processes.run([sys.executable, "-c", "import time; time.sleep(60)"], env)
    server = processes.Server([sys.executable, "-c", "import time; time.sleep(60)"], env)
    try:
        with pytest.raises(processes.Failed, match="closed its output"):
            server.greet()
    finally:
        server.stop()


def test_a_tool_that_fails_has_a_row_and_the_next_has_its_turn(
    peers: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(peers.Tool):  # type: ignore[misc, name-defined]
        name, version = "broken", "1"

        def install(self) -> None:
            raise KeyError("results")

    class Absent(Broken):
        name = "absent"

        def install(self) -> None:
            raise FileNotFoundError("npm")

    monkeypatch.setattr(peers, "TOOLS", (Broken, Absent))
    monkeypatch.setattr(sys, "argv", ["run.py", "--in", str(tmp_path)])
    peers.main()
    table = capsys.readouterr().out
    assert "| broken 1 | did not run: KeyError('results') |" in table
    assert "| absent 1 | did not run: FileNotFoundError('npm') |" in table


def test_the_endpoint_embeds_as_we_do_and_counts_what_is_sent(peers: ModuleType) -> None:
    endpoint, processes = importlib.import_module("endpoint"), importlib.import_module("processes")
    server = endpoint.serve()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        asked = {"input": ["an apple", "a pear"], "model": "any"}
        answer = processes.fetch(f"{url}/v1/embeddings", asked)
        vectors = np.array([row["embedding"] for row in answer["data"]])
        assert np.allclose(vectors, Embedder().texts(asked["input"]), atol=1e-6)
        said = processes.fetch(
            f"{url}/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}
        )
        assert json.loads(said["choices"][0]["message"]["content"]) == {"facts": []}
        spent = processes.fetch(f"{url}/spent")
    finally:
        server.shutdown()
        server.server_close()
    assert (spent["embedding_requests"], spent["embedding_chars"], spent["model_requests"]) == (1, 14, 1)


@pytest.mark.slow
def test_it_measures_ua_memory(tmp_path: Path) -> None:
    argv = [
        sys.executable,
        str(PEERS / "run.py"),
        "--in",
        str(tmp_path),
        "--tools",
        "ua-memory",
        "--rounds",
        "1",
    ]
    data = str(PEERS.parents[1] / "examples/recall.jsonl")
    done = subprocess.run([*argv, data], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())["ua-memory"]
    assert figures["questions"] == 5 and figures["recall"] == 1.0, figures
    assert figures["cold_cpu"] > 0 and figures["held"] > 0 and "'model_requests': 0" in done.stdout
