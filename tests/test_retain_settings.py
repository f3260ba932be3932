"""What of a conversation is kept, and the tags that say in what it was said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from banks import git, new_bank

from ua_memory import config
from ua_memory.clients.turns import Session, Turn
from ua_memory.config import Config
from ua_memory.errors import Malformed
from ua_memory.knowledge.observations import scope_of
from ua_memory.markdown import blocks as markdown_blocks
from ua_memory.markdown import document as markdown
from ua_memory.mcp import tools as mcp_server
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.retain.flush import filter_turns
from ua_memory.text.wording import AUTO, TOOL, context_tags

TURNS = (
    Turn("1", "person", "Keep this. <private>not\nthis</private>"),
    Turn("2", "assistant", "<private>nor this</private>"),
    Turn("3", "tool", "mcp__github__search heroku: ok"),
    Turn("4", "tool", "Edit: error"),
)


def left(**settings: tuple[str, ...]) -> list[str]:
    return [turn.text for turn in filter_turns(TURNS, replace(Config(), **settings))]  # type: ignore[arg-type]


def test_settings_say_what_is_kept() -> None:
    assert left() == [turn.text for turn in TURNS]
    assert left(retain_content=("tool",)) == [TURNS[2].text, TURNS[3].text]
    assert left(strip=("(?s)<private>.*?</private>",)) == ["Keep this.", TURNS[2].text, TURNS[3].text]
    assert left(tool_filter=("mcp__*", "Edit"), retain_content=("tool",)) == []


@pytest.mark.parametrize("wrong", ['retainContent = ["human"]', "strip = ['(']", "toolFilter = 7"])
def test_what_they_may_not_be_is_said(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "ua-memory.toml").write_text(f"{wrong}\n")
    with pytest.raises(Malformed, match=wrong.split()[0]) as found:
        config.load(tmp_path, {})
    assert found.value.hint


@pytest.mark.parametrize("tags", [("cwd:/a b", "project:é"), ("a-->b", "<!--", '"'), ()])
def test_tags_of_a_heading_come_back(tags: tuple[str, ...]) -> None:
    text = f"## 12:00 · x\n{markdown_blocks.tags_line(tags)}\n\n- a ^aaaaaaaaaa\n\n## 13:00 · y\n\n- b\n"
    first, second = markdown.parse(text.encode(), "memory/2026-11-21.md").of(Fact)
    assert first.heading.tags == tags and second.heading.tags == () and first.tags == ()


@pytest.mark.parametrize("comment", ["tags: a, b", "tags: [1]", 'tags: {"a": 1}', "tags: [" + "[" * 100_000])
def test_a_persons_comment_is_a_comment(comment: str) -> None:
    found = markdown.parse(f"## A\n<!-- {comment} -->\n- a\n".encode(), "memory/2026-11-21.md")
    assert found.of(Fact)[0].heading.tags == () and not found.problems


def test_what_is_kept_is_found_by_where_it_was_said(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    shop = tmp_path / "src" / "shop"
    (shop / "api").mkdir(parents=True)
    git(shop, "init", "-q")
    bank.insert("The office is in Lisbon", session="s0")
    with Memory(bank.store) as memory:
        for name, folder, said in (
            ("s1", shop / "api", "We decided that s1 deploys to Fly.io on 3 March 2027."),
            ("s1", shop / "api", "We agreed with Bob to review the price on 7 May 2027."),
            ("s2", tmp_path, "We decided that s2 deploys to Fly.io on 4 March 2027."),
        ):
            memory.conversations.flush_turns(
                Session("claude-code", name, str(folder)), [Turn(said[-8:], "person", said)]
            )
        assert bank.text().count("<!-- tags: ") == 2 == bank.text().count("<!-- through: ")
        assert "#" not in bank.text().partition("deploys to Fly.io")[2].partition("\n")[0]

        def found(**scope: object) -> str:
            filters = memory.filters(**scope)  # type: ignore[arg-type]
            answer = memory.search_many(["where do we deploy, Lisbon, Bob"], filters=filters, by_words=True)[
                0
            ]
            return "\n".join(hit.item.text for hit in answer.hits)

        here = found(tags=["project:shop"], match="any")
        assert "s1 deploys" in here and "7 May" in here and "Lisbon" in here and "s2" not in here
        assert "Lisbon" not in found(tags=["project:shop"], match="any_strict")
        assert "s2 deploys" in found(tags=["session:s2", f"cwd:{tmp_path}"], match="all_strict")
        assert "store_method" not in "".join(hit.item.context for hit in memory.search("deploys").hits)


def test_what_a_tool_keeps_and_what_a_flush_keeps_say_so_under_headings_of_their_own(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    bank.again(observation_scopes=("{project}",))
    here = {"session": "s1", "cwd": str(tmp_path / "shop"), "basedir": "shop", "project": "shop"}
    caller = mcp_server.Caller(
        "claude-code", "s1", said_in=context_tags("claude-code", here, TOOL, ["{project}", "{parent}"])
    )
    turns = [Turn("t1", "person", "We decided that the shop deploys to Fly.io on 3 March 2027.")]
    with Memory(bank.store, door="mcp") as memory:

        def call(tool: str, **given: object) -> None:
            text, failed = mcp_server.call_tool(memory, tool, given, caller)
            assert not failed, text

        call("archival_memory_insert", content="The shop is in Lisbon.")
        memory.conversations.flush_turns(Session("claude-code", "s1", here["cwd"]), turns)
        call("archival_memory_insert", content="The shop opens at nine.")
        call("archival_memory_insert", content="It closes at six.")
        call("retain", content="Bob moved to Porto in May 2026.", document_id="minutes")
        call("retain", content="Ann moved to Faro in June 2026.", document_id="minutes", update_mode="append")
    said = {f.text: f for f in markdown.parse(bank.bytes(), "memory/2026-11-21.md").of(Fact)}
    ways = [set(fact.heading.tags) & {AUTO, TOOL} for fact in said.values()]
    assert ways == [{TOOL}, {AUTO}, {TOOL}, {TOOL}] and bank.text().count("<!-- tags: ") == 3
    assert said["It closes at six."].heading.tags == (
        "harness:claude-code", "session:s1", f"cwd:{here['cwd']}", "basedir:shop", "project:shop", TOOL,
        "scope:project:shop",
    )  # fmt: skip
    assert {scope_of(fact) for fact in said.values()} == {"project:shop"}
    document = markdown.parse(bank.bytes("memory/documents/minutes.md"), "memory/documents/minutes.md")
    kept = document.of(Fact)
    assert [fact.text.split()[0] for fact in kept] == ["Bob", "Ann"]
    assert {TOOL, "project:shop"} <= set(kept[1].heading.tags) and "session:s1" not in kept[1].heading.tags
