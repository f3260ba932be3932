"""Recalled memory that clients keep in session files: what goes, and that nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from terminal import Shell, new_shell

from ua_memory.clients.transcripts import PRUNED_TEXT, prune_line, read
from ua_memory.text import noise as fence

BLOCK = fence.fenced("recall", '- 2026-11-21: Noor said "tea" \\ é [memory/2026-11-21.md]')


def line(**record: Any) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"


PI = [
    line(type="session", version=3, id="s", timestamp="2026-11-21T10:00:00Z", cwd="/x"),
    line(type="message", id="a", parentId=None, timestamp="t",
         message={"role": "user", "content": "What do I drink?"}),
    line(type="custom_message", id="b", parentId="a", timestamp="t", customType="hindsight-recall",
         content=BLOCK),
    line(type="custom_message", id="c", parentId="b", timestamp="t", customType="other", content="stays"),
    line(type="message", id="d", parentId="c", timestamp="t",
         message={"role": "assistant", "content": [{"type": "text", "text": f"The marks are {BLOCK}"}]}),
]  # fmt: skip
INJECTED = [
    line(type="attachment", uuid="u", parentUuid="p",
         attachment={"type": "hook_additional_context", "content": [f"CTX {BLOCK} end"]}),
    line(type="response_item", ordinal=3,
         payload={"role": "developer", "content": [{"type": "input_text", "text": BLOCK}]}),
    line(type="custom_message", id="b", customType="other", content=f"before {BLOCK}"),
]  # fmt: skip


@pytest.mark.parametrize("raw", INJECTED)
def test_a_block_goes_from_what_was_injected_and_no_other_byte_of_its_line(raw: bytes) -> None:
    new = prune_line(raw)
    assert new and len(new) == len(raw) and new.endswith(b" \n") and b"Noor" not in new
    cut = raw.index(b"<ua-memory-recall")
    assert new.startswith(raw[:cut] + PRUNED_TEXT.encode() + raw[raw.index(b"</ua-memory-recall>") + 19 : -1])
    assert prune_line(new) is None


@pytest.mark.parametrize(
    "raw",
    [PI[1], PI[3], PI[4], b"{ no json <ua-memory-recall x\n",
     line(type="user", message={"content": BLOCK}),
     line(type="response_item", payload={"role": "user", "content": BLOCK}),
     line(type="attachment", attachment={"type": "x"}, about=BLOCK),
     line(type="custom_message", customType="other", content="<ua-memory-recall kind=x> without an end")],
)  # fmt: skip
def test_what_anybody_said_stays(raw: bytes) -> None:
    assert prune_line(raw) is None


def test_a_block_that_somebody_quotes_in_the_same_line_stays_too() -> None:
    raw = line(type="attachment", attachment={"content": BLOCK}, about=BLOCK)
    new = prune_line(raw)
    assert new and len(new) == len(raw)
    assert json.loads(new) == {"type": "attachment", "attachment": {"content": PRUNED_TEXT}, "about": BLOCK}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def test_without_confirm_nothing_changes_and_with_it_only_those_lines(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    file, other = folder / "s.jsonl", folder / "other.jsonl"
    whole = b"".join(PI) + PI[2][:-9]  # the last line is being written
    file.write_bytes(whole)
    other.write_bytes(PI[1])
    (folder / "away.jsonl").symlink_to("nowhere")  # neither stops what is there
    (folder / "folder.jsonl").mkdir()
    shown = shell.ok("prune-recall-messages", str(folder))
    assert "s.jsonl: 1 message" in shown.out and "confirm" in shown.err and "other" not in shown.out
    assert file.read_bytes() == whole
    done = shell.ok("prune-recall-messages", str(folder), "confirm", "--json").json
    left = file.read_bytes()
    assert len(left) == len(whole)
    assert left.split(b"\n")[:2] + left.split(b"\n")[3:] == whole.split(b"\n")[:2] + whole.split(b"\n")[3:]
    assert json.loads(left.split(b"\n")[2]) == {
        "type": "custom", "id": "b", "parentId": "a", "timestamp": "t", "customType": "hindsight-recall",
    }  # fmt: skip
    assert Path(done["files"][0]["backup"]).read_bytes() == whole and done["files"][0]["messages"] == 1
    assert shell.ok("prune-recall-messages", str(folder), "confirm", "--json").json["files"] == []
    with file.open("rb") as stream:  # what hung on it in the tree still does
        assert [turn.role for turn in read(stream)] == ["person", "assistant"]
