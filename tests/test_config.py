"""Settings: each from default, file and environment; what is off is refused with its place, or told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ua_memory import config
from ua_memory.config import Config
from ua_memory.errors import Malformed

GOOD: dict[str, tuple[str, Any]] = {
    "id": ('id = "k7m2q9x4tb"', "k7m2q9x4tb"),
    "trail": ('trail = "own"', "own"),
    "timezone": ('timezone = "Europe/Kyiv"', "Europe/Kyiv"),
    "mission": ('mission = "remember"', "remember"),
    "directives": ('directives = ["no gossip"]', ("no gossip",)),
    "skepticism": ("disposition.skepticism = 5", 5),
    "literalism": ("disposition.literalism = 1", 1),
    "empathy": ("disposition.empathy = 2", 2),
    "core_block_tokens": ("core.block_tokens = 7", 7),
    "core_tokens": ("core.tokens = 8", 8),
    "quiet_seconds": ("hand_edits.quiet_seconds = 1", 1.0),
    "few": ("hand_edits.few = 0", 0),
    "lock_seconds": ("store.lock_seconds = 0.5", 0.5),
    "embedding": ('index.embedding = "minilm-int8"', "minilm-int8"),
    "search_limit": ("search.limit = 1000", 1000),
    "min_score": ("search.min_score = 0.35", 0.35),
    "order": ('search.order = "rrf"', "rrf"),
    "long_query": ('recall.long_query_behavior = "condense"', "condense"),
    "boosts": ('search.boosts = ["recency", "trust"]', ("recency", "trust")),
    "mcp_tools": ('mcp.tools = ["recall"]', ("recall",)),
    "mcp_read_only": ("mcp.read_only = true", True),
    "extra_paths": ('extraPaths = ["~/notes", "../api/docs"]', ("~/notes", "../api/docs")),
    "recall_budget": ('recall.budget = "high"', "high"),
    "auto_recall_tags": ('autoRecallTags = ["{project}"]', ("{project}",)),
    "observation_scopes": ('observationScopes = ["{project}"]', ("{project}",)),
    "auto_recall_tags_match": ('autoRecallTagsMatch = "all_strict"', "all_strict"),
    "auto_recall_tag_groups": ("autoRecallTagGroups = '[]'", "[]"),
    "retain_content": ('retainContent = ["person"]', ("person",)),
    "strip": ('strip = ["<private>.*"]', ("<private>.*",)),
    "tool_filter": ('toolFilter = ["mcp__*"]', ("mcp__*",)),
    "redact": ('redaction.patterns = { host = "[a-z]+[.]corp" }', {"host": "[a-z]+[.]corp"}),
    "enabled": ("enabled = false", False),
}

for _name, _key, _, _, _default in config.settings():
    if _name not in GOOD and isinstance(_default, int | float):  # a number is tried as its next
        GOOD[_name] = (f"{_key} = {_default + 1}", _default + 1)


def write(root: Path, text: str | bytes) -> None:
    (root / "ua-memory.toml").write_bytes(text if isinstance(text, bytes) else text.encode())


def test_defaults_where_there_is_no_file(tmp_path: Path) -> None:
    found = config.load(tmp_path, {})
    assert replace(found, sources={}) == Config()
    assert set(found.sources.values()) == {"default"}


def test_a_variable_has_a_list_with_commas(tmp_path: Path) -> None:
    found = config.load(tmp_path, {"UA_MEMORY_MCP_TOOLS": "recall, get_page"})
    assert found.mcp_tools == ("recall", "get_page")


def test_every_setting_is_tried_below() -> None:
    in_file = {each.name for each in config._table() if each.metadata["in_file"]}
    assert set(GOOD) == in_file == {name for name, *_ in config.settings()} - {"chroma_url", "cross_encoder"}


@pytest.mark.parametrize("name", GOOD)
def test_a_setting_of_the_file(tmp_path: Path, name: str) -> None:
    text, value = GOOD[name]
    write(tmp_path, text)
    found = config.load(tmp_path, {})
    assert getattr(found, name) == value
    assert type(getattr(found, name)) is type(getattr(Config(), name))
    assert found.sources[name] == "ua-memory.toml"
    assert [key for key, source in found.sources.items() if source != "default"] == [name]
    assert found.unknown == ()


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'enabled = true\nindex.embedding = "minilm-int8"')
    found = config.load(tmp_path, {"UA_MEMORY_ENABLED": "0", "UA_MEMORY_EMBEDDING": "onnx"})
    assert (found.enabled, found.embedding) == (False, "onnx")
    assert found.sources["enabled"] == "UA_MEMORY_ENABLED"
    assert config.load(tmp_path, {"UA_MEMORY_ENABLED": ""}).sources["enabled"] == "ua-memory.toml"


@pytest.mark.parametrize("word", ["1", "true", "YES", "on", " 1 "])
def test_words_for_yes(tmp_path: Path, word: str) -> None:
    assert config.load(tmp_path, {"UA_MEMORY_ENABLED": word}).enabled is True
    with pytest.raises(Malformed, match="UA_MEMORY_ENABLED"):
        config.load(tmp_path, {"UA_MEMORY_ENABLED": word + "x"})


@pytest.mark.parametrize(
    "text",
    [
        "disposition.empathy = 0",
        "disposition.empathy = 6",
        "disposition.empathy = 2.5",
        "disposition.empathy = true",
        'disposition.empathy = "much"',
        "core.tokens = 0",
        "core.block_tokens = []",
        "search.limit = 1001",
        "search.min_score = 1.1",
        "search.min_score = nan",
        "hand_edits.quiet_seconds = -1",
        "hand_edits.quiet_seconds = inf",
        "store.lock_seconds = -0.1",
        "mission = 3",
        "mission = 2026-11-21",
        'directives = "one"',
        "directives = [1]",
        'redaction.patterns = ["a"]',
        "redaction.patterns = { a = 1 }",
        'redaction.patterns = { a = "(" }',
        'redaction.patterns = { "A b" = "x" }',
        'trail = "elsewhere"',
        'recall.long_query_behavior = "cut"',
        "recall.longest_query = 0",
        'recall.budget = "some"',
        'search.boosts = ["luck"]',
        'autoRecallTagsMatch = "most"',
        'autoRecallTagGroups = "{}"',
        'autoRecallTagGroups = "["',
        "recall.max_tokens = -1",
        'timezone = "Mars/Phobos"',
        'timezone = "../../etc/passwd"',
        'timezone = "America"',
        'id = "../../outside"',
        'id = ""',
        'id = "a/b"',
        "[id]",
        'enabled = "perhaps"',
    ],
)
def test_what_is_off_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    key = text.strip("[]").partition(" =")[0]
    with pytest.raises(Malformed) as caught:
        config.load(tmp_path, {})
    assert caught.value.where == f"ua-memory.toml, {key}"
    assert caught.value.mend


@pytest.mark.parametrize("data", [b"id = ", b"\xff\xfe", b"a = 1\na = 2", b"[core\n"])
def test_a_broken_file_is_named(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, data)
    with pytest.raises(Malformed) as caught:
        config.load(tmp_path, {})
    assert caught.value.where == "ua-memory.toml"
    assert str(tmp_path) in (caught.value.mend or "")


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, b'\xef\xbb\xbfid = "abc"\r\n')
    assert config.load(tmp_path, {}).id == "abc"


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "ua-memory.toml").mkdir()
    with pytest.raises(Malformed, match="cannot be read"):
        config.load(tmp_path, {})


def test_unknown_keys_are_told(tmp_path: Path) -> None:
    write(tmp_path, 'timezon = "UTC"\ncore = { tokens = 9, token = 3 }\n[search]\nlimt = 3\n[mine]\na = 1\n')
    found = config.load(tmp_path, {})
    assert found.unknown == ("timezon", "core.token", "search.limt", "mine")
    assert found.core_tokens == 9


def test_a_section_that_is_none_is_told(tmp_path: Path) -> None:
    write(tmp_path, "core = 3\nredaction = { patterns = {} }\n")
    assert config.load(tmp_path, {}).unknown == ("core",)


def test_no_endpoint_or_key_can_come_from_the_file(tmp_path: Path) -> None:
    """I64: what came with a cloned repository redirects nothing."""
    names = [each.metadata["toml"] for each in config._table() if each.metadata["in_file"]]
    suspicious = (
        "url",
        "key",
        "endpoint",
        "host",
        "remote",
        "secret",
        "password",
        "model",
        "chroma",
        "proxy",
    )
    assert not [name for name in names if any(word in name for word in suspicious)]
    evil = (
        *("ANTHROPIC_BASE_URL", "UA_MEMORY_CHROMA_URL", "index.chroma_url"),
        *("UA_MEMORY_CROSS_ENCODER", "search.cross_encoder"),
    )
    write(tmp_path, "\n".join(f'{key} = "http://evil"' for key in evil))
    found = config.load(tmp_path, {})
    assert replace(found, sources={}, unknown=()) == Config()
    assert found.unknown == evil
    own = config.load(tmp_path, {"UA_MEMORY_CHROMA_URL": "http://mine"})
    assert own.chroma_url == "http://mine" and own.sources["chroma_url"] == "UA_MEMORY_CHROMA_URL"


@pytest.mark.parametrize("name", ["openai", "cohere", "voyageai", "anything"])
def test_the_file_cannot_choose_an_embedding_that_sends_text_away(tmp_path: Path, name: str) -> None:
    """I64: with the owner's OPENAI_API_KEY in the environment, the choice alone would be enough."""
    write(tmp_path, f'index.embedding = "{name}"')
    with pytest.raises(Malformed, match="UA_MEMORY_EMBEDDING"):
        config.load(tmp_path, {})
    assert config.load(tmp_path, {"UA_MEMORY_EMBEDDING": name}).embedding == name


def test_the_clock_goes_by_the_bank_s_timezone() -> None:
    now = Config(timezone="Pacific/Kiritimati").clock()()
    assert now.utcoffset() == datetime.now(UTC).astimezone(now.tzinfo).utcoffset()
    assert now.utcoffset() and now.utcoffset().total_seconds() == 14 * 3600  # type: ignore[union-attr]
    assert Config().clock()().tzinfo is not None
