"""Where the system gives no more memory: an answer by words that says so, or one clear error."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ua_memory import Memory
from ua_memory.errors import OutOfMemory
from ua_memory.index import embedding as embed
from ua_memory.index import embedding as heap
from ua_memory.index import embedding as said
from ua_memory.index import vectors
from ua_memory.index.vectors import LocalVectors, VectorsDamaged, VectorsUnavailable
from ua_memory.views.output import run_reporting_errors

TEXT = "The walnut trees were planted in 1911."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Memory.init(tmp_path / "bank") as memory:
        memory.insert(TEXT)
    return tmp_path / "bank"


@pytest.mark.few(1)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep to RLIMIT_AS")
@pytest.mark.parametrize("megabytes", [300, 500, 1100])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_limit_of_memory_leaves_words(megabytes: int, indexed: bool, root: Path) -> None:
    if indexed:
        with Memory.open(root) as memory:
            assert memory.search("walnut").mode == "hybrid"

    def limited(*argv: str) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ua_memory", "--bank", root, *argv],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20,) * 2),
            capture_output=True,
            text=True,
            check=True,
        )
        assert "panicked" not in done.stderr and "allocation" not in done.stderr
        return done.stdout + done.stderr

    assert (
        TEXT in (found := limited("search", "walnut trees"))
        and "keyword search only: the limit of mem" in found
    )
    assert TEXT in limited("recall", "walnut trees")
    limited("insert", "Told with little memory.")
    limited("index", "rebuild")
    with Memory.open(root) as memory:  # and nothing of it stays
        assert memory.search("told with little memory").mode == "hybrid"


def test_a_limit_is_told_before_chroma_or_the_model_meet_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = LocalVectors(tmp_path / "chroma")
    monkeypatch.setattr(heap, "free_address_space", lambda: vectors.CALL_BYTES - 1)
    with pytest.raises(VectorsUnavailable, match="limit of memory"):
        opened.count()
    with pytest.raises(VectorsUnavailable, match="limit of memory"):
        LocalVectors(tmp_path / "other")
    with pytest.raises(embed.EmbeddingUnavailable, match="limit of memory"):
        embed.Embedder().texts(["a"])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("(code: 7) out of memory"),
        RuntimeError("(code: 13) database or disk is full"),
        UnicodeEncodeError("utf-8", "/bad\udcff", 4, 5, "surrogates not allowed"),
    ],
)
def test_what_fails_for_want_of_memory_is_no_damage(
    error: Exception, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(root) as memory:
        assert memory.search("walnut").mode == "hybrid"
        kept = cast("LocalVectors", memory.index.vectors)

        def fails(**_: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(
                kept, "_collection", SimpleNamespace(query=fails, count=fails, upsert=fails, get=fails)
            )
            with pytest.raises(VectorsUnavailable) as told:
                kept.count()
            assert not isinstance(told.value, VectorsDamaged)
            memory.insert("Another one.")
            answer = memory.search("walnut trees")
            assert answer.mode == "words" and answer.hits[0].item.text == TEXT
            assert not [note for note in answer.notes if "rebuilt" in note]
        assert memory.search("walnut").mode == "hybrid"


def test_a_model_that_does_not_run_leaves_words(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    with Memory.open(root) as memory:
        assert memory.search("walnut").mode == "hybrid"
        monkeypatch.setattr(embed.Embedder, "_run", fails)
        answer = memory.search("walnut trees planted")
    assert answer.mode == "words" and answer.hits[0].item.text == TEXT
    assert "keyword search only: the model does not run: no memory" in answer.notes


def test_work_beside_is_done_here_where_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", fails)
    assert said.run_in_thread(lambda: 7).result() == 7


def test_a_command_that_has_no_memory_says_so() -> None:
    call = SimpleNamespace(stdout=io.StringIO(), stderr=io.StringIO(), as_json=False, debug=False)

    def work() -> int:
        raise MemoryError

    assert run_reporting_errors(cast("Any", call), work) == OutOfMemory.exit_code == 21
    assert "not enough memory" in call.stderr.getvalue() and "bug" not in call.stderr.getvalue()
