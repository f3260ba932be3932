"""The flush without a model, measured on the sentences that were labelled by hand."""

from __future__ import annotations

import labelled
import pytest

from ua_memory.retain.extract import extract

needs_shared = pytest.mark.skipif(not labelled.transcripts(), reason="the shared transcripts are not here")


def test_the_labels_are_200_and_say_no_text() -> None:
    drawn = [label for label in labelled.labels() if label.stratum != "K"]
    assert len(drawn) == len({label.key for label in drawn}) == 200
    assert {label.half for label in drawn} == {"tune", "test"}
    assert all(len(label.hash) == 16 for label in labelled.labels())


@pytest.mark.shared
@needs_shared
def test_precision_and_recall_hold_on_both_halves() -> None:
    fate = {key: kept for path in labelled.transcripts() for key, kept in labelled.kept(path)}
    drawn = [label for label in labelled.labels() if label.stratum != "K"]
    assert {label.key for label in drawn} <= fate.keys()
    for half in ("tune", "test"):
        told = labelled.measure([label for label in drawn if label.half == half], fate)
        assert told.precision >= 0.8, half
        assert told.recall >= 0.5, half


@pytest.mark.shared
@needs_shared
def test_the_shared_transcripts_leave_no_more_than_15_in_10_000_words() -> None:
    facts = words = 0
    for path in labelled.transcripts():
        said = labelled.turns(path)
        facts, words = facts + len(extract(said)), words + labelled.words(said)
    assert 0 < facts / words * 10_000 <= 15
