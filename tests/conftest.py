"""What holds for every test: no home folder, no settings, no git identity and no network of the outside.

A test that needs one of them sets it itself, inside its own temporary folder. The guards are here and
not in a fixture to ask for, because the test that forgets to ask is the one that writes into a person's bank.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from guards import FOLDERS, REACHED, isolated, memory_folder, refuse_network
from hypothesis import HealthCheck, settings
from shared_embedder import Models, once_for, opened_with_tables

LONG = Path(__file__).with_name("long.txt")
"""The tests that `make test` leaves out, `file::function` a line."""

TOGETHER = {
    file: files.split()[0]
    for files in (
        # which read all our sources, or import `mcp`
        "test_house test_layers test_docs test_limits test_mcp_http",
        # which call a model through the library of its maker: two seconds, to import it
        "test_llm test_providers test_extract_by_model test_flush_again test_cli_flush test_consolidate "
        "test_reflect test_reflect_cli test_refresh test_retain test_cli_retain test_pages test_knowledge "
        "test_cli_observations test_memory_tool test_watched_files",
    )
    for file in files.split()
}
"""Files that run in one worker, by the first of them."""

sys.addaudithook(refuse_network)

# Chroma asks for it at each opening, and the hook by which pytest rewrites asserts looks for it at length.
sys.modules.setdefault("google.colab", None)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders, one a call. (`mktemp` reads the names of all that were made before, each time.)"""
    folder = tmp_path_factory.mktemp("homes")
    FOLDERS.append(folder)
    return (folder / f"home{number}" for number in count())


@pytest.fixture(autouse=True)
def _isolated(_homes: Iterator[Path]) -> Iterator[None]:
    """A home folder of its own for each test; no setting of ours, of git's or of a model's from outside.

    Processes that a test starts inherit all of it. The patch is not the `monkeypatch` of the test, so
    that a test may call its `undo`.
    """
    _keep_one_model()
    _keep_one_migration(_homes)
    with isolated(next(_homes)):
        REACHED.clear()
        yield
    assert not REACHED, f"the network was tried: {REACHED}"


def _keep_one_model() -> None:
    """The embedding model, once loaded, stays for the tests to come: a third of a second each time. Neither a
    text nor its file is read again that was read: most tests of a file have the same bank."""
    runtime = sys.modules.get("ua_memory.index.embedding")
    if runtime is None or isinstance(runtime.LOADED_MODELS, Models):
        return
    runtime.LOADED_MODELS = Models(runtime.LOADED_MODELS)  # which held it weakly
    runtime.verified_bytes = once_for(runtime.verified_bytes, runtime._file_key)


def _keep_one_migration(homes: Iterator[Path]) -> None:
    """Chroma's migrations make the tables of a new folder, once a worker and not once a test: 8 ms each."""
    vectors = sys.modules.get("ua_memory.index.vectors")
    if vectors is not None and not hasattr(vectors.LocalVectors._open, "__wrapped__"):
        opened = opened_with_tables(vectors.LocalVectors._open, next(homes).with_suffix(".sqlite3"))
        vectors.LocalVectors._open = opened


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto` two more than there are cores, of one core two in all: a third of what tests take is
    waiting, for the disk and for processes. Two cores stood idle a quarter of the time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return cores + min(cores, 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For `--dist loadfile` one that keeps a worker to the files that stand in `TOGETHER`, too."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(Path(file := super()._split_scope(nodeid)).stem, file)

    return Scheduling(config, log)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--in-memory") and (folder := memory_folder()):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", folder)  # where `tmp_path` lies; workers inherit it


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker and not sys.dont_write_bytecode:
        _compile_share(int(worker["workerid"][2:]), worker["workercount"])


def _compile_share(number: int, workers: int) -> None:
    """In a new checkout, compile every so-manieth test file: each worker took four seconds to compile all."""
    files = sorted(LONG.parent.glob("test_*.py"))
    compiled = {file.name.partition(".")[0] for file in LONG.parent.glob("__pycache__/*-pytest-*.pyc")}
    for file in files[number::workers]:
        if file.stem not in compiled:
            with suppress(Exception, pytest.skip.Exception):  # it is told when the tests are collected
                importlib.import_module(file.stem)
            sys.modules.pop(file.stem, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long what `long.txt` lists, and as slow what `few(n)` leaves out: all but n rows of such a
    test, from the first to the last."""
    long = set(LONG.read_text().splitlines())
    for item in items:
        if item.nodeid.partition("[")[0].removeprefix("tests/") in long:
            item.add_marker(pytest.mark.long)
    tables: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for rows in tables.values():
        marked = rows[0].get_closest_marker("few")
        last = (marked.args[0] if marked else len(rows)) - 1
        kept = {round(n * (len(rows) - 1) / max(last, 1)) for n in range(last + 1)}
        for number in {*range(len(rows))} - kept:
            rows[number].add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Four thousand tests, and all that was imported for them, are not looked through for garbage each time,
    nor copied by every process that is forked off and does."""
    gc.freeze()
    gc.set_threshold(10_000)  # as commands have it: what tests make is short-lived
    gc.enable()


# -- figures -------------------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests have counted (`record_property("figure", …)`): points killed, cases run, facts found."""
    done = terminalreporter.getreports("passed")
    told = [text for each in done for name, text in each.user_properties if name == "figure"]
    cases = [int(str(n)) for each in done for name, n in each.user_properties if name == "cases"]
    if cases:
        told.append(f"properties: {len(cases)} held in {sum(cases):,} cases")
    if told:
        terminalreporter.section("tried, and survived")
        for text in told:
            terminalreporter.write_line(str(text))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how many cases of a property Hypothesis has run."""
    report = yield
    said = getattr(item, "hypothesis_statistics", "") if report.when == "call" else ""
    if cases := sum(map(int, re.findall(r"(\d+) passing", said))):
        report.user_properties.append(("cases", cases))
    return report


# -- golden files --------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files from what the code does"
    )
    parser.addoption(
        "--in-memory", action="store_true", help="tests' folders in /dev/shm, where there is room"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, bytes], None]:
    """`golden(path, data)`: the file must hold exactly these bytes; `make golden` writes them instead."""

    def compare(path: Path, data: bytes) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        else:
            assert path.exists(), f"{path} is missing: run `make golden`, then read the diff"
            assert data == path.read_bytes()

    return compare


# -- properties ----------------------------------------------------------------------------------------

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a busy machine is no finding

for name, examples in (("main", 16), ("all", 200)):  # the same ones each time
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=_SLOW,
    )
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "2000")),
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.load_profile("main")  # --hypothesis-profile on the command line still wins
