"""docs/python.md: every example is run against a scripted model where its client is here, else compiled."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from banks import NOON
from fake_model import FakeModel

from ua_memory import Memory

TEXT = (Path(__file__).parent.parent / "docs" / "python.md").read_text("utf-8")
SECTIONS = {
    part.partition("\n")[0]: re.findall(r"^```python\n(.+?)^```$", part, re.M | re.S)
    for part in re.split(r"^#+ ", TEXT, flags=re.M)[1:]
}
CREATE = {"command": "create", "path": "/memories/coffee.md", "file_text": "- Noor takes a cortado.\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "bank").mkdir()
    with Memory.init(tmp_path / "bank", now=lambda: NOON) as memory:
        memory.insert("Noor drinks tea at home.")
        memory.core.replace("User", "Noor, in Lisbon.")
    return tmp_path / "bank"


def ran(section: str, root: Path, number: int = 0) -> dict[str, Any]:
    """What an example leaves behind, run on a bank of the test's."""
    code = SECTIONS[next(name for name in SECTIONS if name.startswith(section))][number]
    left: dict[str, Any] = {}
    exec(compile(code.replace("/home/noor/ua-memory", str(root)), "docs/python.md", "exec"), left)
    for name in ("client", "memory"):  # else they are closed in another test, with a warning there
        getattr(left.get(name), "close", bool)()
    return left


def test_every_example_is_python_and_every_name_is_there(root: Path) -> None:
    for section, examples in SECTIONS.items():
        for code in examples:
            compile(code, section, "exec")
            assert len(code.splitlines()) <= 45, section
    named = re.findall(r"^- (?:keep|find|think|look after it|a model): (.+)$", TEXT, re.M)
    names = [name for row in named for name in re.findall(r"`([a-z_]+)(?:\(.*?\))?`", row)]
    assert len(names) > 15
    assert not [name for name in names if not callable(getattr(Memory, name, None)) and name != "model"]
    parts = re.findall(r"^- `memory\.([a-z]+)`: (.+)$", TEXT, re.M)
    assert len(parts) > 15
    with Memory.open(root) as memory:
        for part, row in parts:
            for name in re.findall(r"`([a-z_]+)`", row):
                assert callable(getattr(getattr(memory, part), name)), f"{part}.{name}"


def test_the_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new").mkdir()
    ran("From Python", tmp_path / "new")
    assert "Noor takes her coffee as a cortado." in capsys.readouterr().out


def endpoint(monkeypatch: pytest.MonkeyPatch, fake: FakeModel) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)


def test_a_loop_of_your_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeModel({"text": "Tea."}) as fake:
        endpoint(monkeypatch, fake)
        ran("A loop of your own", root)
    assert fake.bodies[0]["system"] == "## User\nNoor, in Lisbon."
    assert "Noor drinks tea at home." in fake.bodies[0]["messages"][0]["content"]
    with Memory.open(root) as memory:
        hits = [hit.item.text for hit in memory.search("the shop in Porto, tea").hits]
        assert "We decided that the shop opens in Porto on 1 December 2026." in hits
        assert len([text for text in hits if "tea" in text]) == 1  # what was recalled was not learnt again


@pytest.mark.parametrize("number", [0, 1])
def test_the_memory_tool(root: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with FakeModel({"calls": [("memory", CREATE)]}, {"text": "I will."}) as fake:
        endpoint(monkeypatch, fake)
        ran("The memory tool", root, number)
    assert fake.bodies[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert "File created successfully at: /memories/coffee.md" in str(fake.bodies[1]["messages"][-1])
    with Memory.open(root) as memory:
        assert memory.search("cortado").hits[0].item.path == "memory/coffee.md"


def test_an_openai_style_loop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tool_call(name: str, given: str) -> SimpleNamespace:
        return SimpleNamespace(id="c1", function=SimpleNamespace(name=name, arguments=given))

    said = [
        [tool_call("remember", '{"text": "Noor moved to Porto on 3 May 2026."}')],
        [tool_call("search_memory", '{"text": "where does Noor live?"}')],
        None,
    ]

    def create(**asked: Any) -> SimpleNamespace:
        message = SimpleNamespace(role="assistant", content="", tool_calls=said.pop(0))
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    completions = SimpleNamespace(completions=SimpleNamespace(create=create))
    monkeypatch.setitem(
        sys.modules, "openai", SimpleNamespace(OpenAI=lambda: SimpleNamespace(chat=completions))
    )  # type: ignore[arg-type]
    left = ran("An OpenAI-style loop", root)
    answers = [
        each["content"] for each in left["messages"] if isinstance(each, dict) and each["role"] == "tool"
    ]
    assert answers[0].startswith("Remembered as ^") and "Noor moved to Porto" in answers[1]
