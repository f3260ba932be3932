"""The cross-encoder's loading code, on a tiny model made here: how often the query's first word is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from index_bank import a_bank, an_index, log
from onnx import TensorProto, helper, numpy_helper, save

from ua_memory.index.embedding import CrossEncoder, CrossUnavailable
from ua_memory.index.sync import Index
from ua_memory.recall.arms import Ranked
from ua_memory.recall.fusion import apply_cross_encoder
from ua_memory.recall.search import search

BEFORE = 2.0
"""The logit of a text without the word."""


def a_model(folder: Path, outputs: int = 1, name: str = "model.onnx", inputs: str = "input_ids") -> Path:
    """logit = the number of tokens that equal the second one (the query's first word) - BEFORE."""
    folder.mkdir(parents=True, exist_ok=True)
    table = resources.files("ua_memory") / "data" / "tokenizer.json"
    shutil.copy(Path(str(table)), folder / "tokenizer.json")
    constants = {
        "one": np.array([1], dtype=np.int64), "two": np.array([2], dtype=np.int64),
        "axis": np.array([1], dtype=np.int64), "before": np.array([[BEFORE]], dtype=np.float32),
        "spread": np.array([[-1.0, 1.0][-outputs:] if outputs < 3 else [1.0] * outputs], dtype=np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", [inputs, "one", "two", "axis"], ["word"]),
        helper.make_node("Equal", [inputs, "word"], ["same"]),
        helper.make_node("Cast", ["same"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["ones", "axis"], ["count"], keepdims=1),
        helper.make_node("Sub", ["count", "before"], ["logit"]),
        helper.make_node("Mul", ["logit", "spread"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes, "tiny",
        [helper.make_tensor_value_info(inputs, TensorProto.INT64, ["n", "t"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", outputs])],
        [numpy_helper.from_array(value, key) for key, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / name).parent.mkdir(exist_ok=True)
    save(model, folder / name)
    return folder


@pytest.mark.parametrize(("outputs", "name"), [(1, "model.onnx"), (2, "onnx/model.onnx")])
def test_it_scores_pairs(tmp_path: Path, outputs: int, name: str) -> None:
    cross = CrossEncoder(a_model(tmp_path / "tiny", outputs, name))
    texts = ["cat cat and a cat", "a dog", "one cat"] * 9  # more than go together
    found = cross.scores("cat", texts)
    logits = np.array([2.0, -1.0, 0.0] * 9) * outputs
    assert found == pytest.approx(list(1 / (1 + np.exp(-logits))), abs=1e-6)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            "does not contain model.onnx and tokenizer.json",
        ),
        (lambda folder: (folder / "model.onnx").write_bytes(b"no model"), "does not load"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "does not load"),
        (lambda folder: a_model(folder, 3), "2 pairs gave an output of shape 2 × 3"),
        (lambda folder: a_model(folder, inputs="pixels"), "it needs the inputs pixels"),
    ],
)
def test_what_is_no_cross_encoder_is_named(tmp_path: Path, broken, says: str) -> None:  # type: ignore[no-untyped-def]
    folder = a_model(tmp_path / "tiny")
    broken(folder)
    with pytest.raises(CrossUnavailable, match=says):
        CrossEncoder(folder).scores("cat", ["a", "b"])


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    lines = ("Biscuit is what Bob called his puppy", "The puppy slept: puppy, puppy, puppy", "Tea is at five")
    with an_index(a_bank(tmp_path / "bank", {"memory/2026-03-02.md": log(*lines)})) as opened:
        yield opened


def test_it_has_the_last_word_on_the_order_and_leaves_the_scores(index: Index, tmp_path: Path) -> None:
    plain = search(index, "puppy biscuit")
    assert "Biscuit" in plain.hits[0].snippet
    index.store.config = replace(index.store.config, cross_encoder=str(a_model(tmp_path / "tiny")))
    found = search(index, "puppy biscuit")
    assert "puppy, puppy" in found.hits[0].snippet and not found.notes
    assert [hit.score for hit in found.hits] == [hit.score for hit in plain.hits]
    assert found.hits[0].parts["cross"] == pytest.approx(0.9526, abs=1e-4)


def test_it_reads_the_best_alone(index: Index, tmp_path: Path) -> None:
    class Counting(CrossEncoder):
        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            read.extend(texts)
            return [0.5] * len(texts)

    read = list[str]()
    found = search(index, "puppy").hits
    many = [Ranked(found[0].item, 0.9, {})] * 100
    assert len(apply_cross_encoder(Counting(tmp_path), "puppy", many)) == 100 and len(read) == 30


def test_without_it_the_order_stays_and_the_answer_says_so(index: Index, tmp_path: Path) -> None:
    plain = search(index, "puppy biscuit")
    index.store.config = replace(index.store.config, cross_encoder=str(tmp_path / "nothing"))
    found = search(index, "puppy biscuit")
    assert found.hits == plain.hits
    assert [note for note in found.notes if note.startswith("ordered without the cross-encoder: ")]
