"""Settings: each from default, file and environment; what is off is refused with its place, or told."""

from __future__ import annotations

import stat
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
    "provider": ('provider = "codex"', "codex"),
    "model": ('model = "opus"', "opus"),
    "chroma_url": ('index.chroma_url = "https://chroma.example"', "https://chroma.example"),
    "cross_encoder": ('search.cross_encoder = "/opt/ranker"', "/opt/ranker"),
    "search_limit": ("search.limit = 1000", 1000),
    "min_score": ("search.min_score = 0.35", 0.35),
    "long_query": ('recall.long_query_behavior = "condense"', "condense"),
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
    "sessions_keep": ("sessions.keep = false", False),
    "sessions_place": ('sessions.place = "bank"', "bank"),
    "sessions_agent": ('sessions.agent = "all"', "all"),
    "sessions_groups": ("sessions.groups = true", True),
    "sessions_recall": ("sessions.recall = false", False),
}

for _one in config.settings():
    if _one.name not in GOOD and isinstance(_one.default, int | float):  # a number is tried as its next
        GOOD[_one.name] = (f"{_one.key} = {_one.default + 1}", _one.default + 1)


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
    assert set(GOOD) == {one.name for one in config.settings()}


@pytest.mark.parametrize("name", GOOD)
def test_a_setting_of_the_file(tmp_path: Path, name: str) -> None:
    text, value = GOOD[name]
    write(tmp_path, text)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "mine")}
    config.trust(tmp_path, env, config.load(tmp_path, env))
    found = config.load(tmp_path, env)
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
    assert caught.value.hint


@pytest.mark.parametrize("data", [b"id = ", b"\xff\xfe", b"a = 1\na = 2", b"[core\n"])
def test_a_broken_file_is_named(tmp_path: Path, data: bytes) -> None:
    write(tmp_path, data)
    with pytest.raises(Malformed) as caught:
        config.load(tmp_path, {})
    assert caught.value.where == "ua-memory.toml"
    assert str(tmp_path) in (caught.value.hint or "")


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
    write(tmp_path, "core = 3\nredaction = { patterns = {} }\n[search]\n[mine]\n")
    assert config.load(tmp_path, {}).unknown == ("core", "mine")


def test_no_endpoint_or_key_can_come_from_the_file(tmp_path: Path) -> None:
    """I64: what came with a cloned repository redirects nothing."""
    suspicious = ("url", "key", "endpoint", "host", "remote", "secret", "password", "model", "proxy", "paths")
    named = {one.key for one in config.settings() if any(word in one.key.lower() for word in suspicious)}
    assert named == {"index.chroma_url", "extraPaths", "model"} <= set(config.sensitive().values())
    unknown = ("ANTHROPIC_BASE_URL", "UA_MEMORY_CHROMA_URL", "UA_MEMORY_CROSS_ENCODER")
    evil = (*unknown, "index.chroma_url", "search.cross_encoder", "index.embedding")
    write(tmp_path, "\n".join(f'{key} = "http://evil"' for key in evil))
    found = config.load(tmp_path, {})
    assert replace(found, sources={}, unknown=(), untrusted={}) == Config()
    assert found.unknown == unknown
    assert set(found.untrusted) == {"chroma_url", "cross_encoder", "embedding"}
    own = config.load(tmp_path, {"UA_MEMORY_CHROMA_URL": "http://mine"})
    assert own.chroma_url == "http://mine" and own.sources["chroma_url"] == "UA_MEMORY_CHROMA_URL"
    assert "chroma_url" not in own.untrusted


@pytest.mark.parametrize("name", ["openai", "cohere", "voyageai", "anything"])
def test_the_file_cannot_choose_an_embedding_that_sends_text_away(tmp_path: Path, name: str) -> None:
    """I64: with the owner's OPENAI_API_KEY in the environment, the choice alone would be enough."""
    write(tmp_path, f'index.embedding = "{name}"')
    found = config.load(tmp_path, {})
    assert found.embedding == "minilm-int8" and found.untrusted == {"embedding": name}
    assert config.load(tmp_path, {"UA_MEMORY_EMBEDDING": name}).embedding == name


# -- whose setting it is -------------------------------------------------------------------------------------


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bank").mkdir()
    return {"XDG_CONFIG_HOME": str(tmp_path / "mine"), "HOME": str(tmp_path / "home")}


def of_user(env: dict[str, str], text: str) -> None:
    folder = config.user_folder(env)
    assert folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


def test_environment_then_user_then_bank_then_default(tmp_path: Path, env: dict[str, str]) -> None:
    bank = tmp_path / "bank"
    assert config.load(bank, env).truncation_threshold == 150_000
    for number, source in ((1, "ua-memory.toml"), (2, "config.toml"), (3, "UA_TRUNCATION_THRESHOLD")):
        if source == "ua-memory.toml":
            write(bank, f"flush.threshold = {number}")
        elif source == "config.toml":
            of_user(env, f"flush.threshold = {number}")
        else:
            env[source] = str(number)
        found = config.load(bank, env)
        assert (found.truncation_threshold, found.sources["truncation_threshold"]) == (number, source)


def test_the_users_sensitive_settings_count_at_once(tmp_path: Path, env: dict[str, str]) -> None:
    of_user(env, 'extraPaths = ["~/notes"]\nindex.chroma_url = "http://mine"\nid = "x"\ntypo = 1\n')
    found = config.load(tmp_path / "bank", env)
    assert found.extra_paths == (f"{env['HOME']}/notes",) and found.chroma_url == "http://mine"
    assert found.id == "" and found.unknown_user == ("id", "typo") and not found.untrusted


@pytest.mark.parametrize("path", ["notes", "../notes", "", "~noor/notes"])
def test_the_users_paths_are_whole_ones(tmp_path: Path, env: dict[str, str], path: str) -> None:
    """`notes` would be a folder, or a link, of whatever repository one stands in."""
    of_user(env, f'extraPaths = ["/srv/wiki", "{path}"]')
    with pytest.raises(Malformed) as caught:
        config.load(tmp_path / "bank", env)
    assert caught.value.where == "config.toml, extraPaths"


def test_a_home_that_is_relative_is_none(tmp_path: Path) -> None:
    """It would lie in the bank: a stranger's repository could bring its own trust along."""
    assert config.user_folder({"XDG_CONFIG_HOME": "here", "HOME": "there"}) is None
    assert config.user_folder({"XDG_CONFIG_HOME": "here", "HOME": "/h"}) == Path("/h/.config/ua-memory")


def test_what_is_trusted_is_this_value_of_this_bank(tmp_path: Path, env: dict[str, str]) -> None:
    bank, other = tmp_path / "bank", tmp_path / "other"
    other.mkdir()
    mine = 'id = "one"\nextraPaths = ["/srv/wiki"]\nstrip = ["x"]\n'
    write(bank, mine)
    config.trust(bank, env, config.load(bank, env), ["extra_paths"])
    assert set(config.load(bank, env).untrusted) == {"strip"}
    config.trust(bank, env, config.load(bank, env))
    assert not config.load(bank, env).untrusted
    write(other, mine)
    assert not config.load(other, env).untrusted  # a clone of it, with the owner's very values
    for changed in (mine.replace("/srv/wiki", "/srv"), mine.replace('"one"', '"two"')):
        write(other, changed)
        assert "extra_paths" in config.load(other, env).untrusted
    assert not config.load(bank, env).untrusted
    config.distrust(bank, env, config.load(bank, env), wholly=True)
    assert set(config.load(bank, env).untrusted) == {"extra_paths", "strip"}


def test_a_relative_path_is_another_one_in_another_clone(tmp_path: Path, env: dict[str, str]) -> None:
    bank, other = tmp_path / "bank", tmp_path / "elsewhere" / "bank"
    other.mkdir(parents=True)
    for root in (bank, other):
        write(root, 'id = "one"\nextraPaths = ["../notes"]\n')
    config.trust(bank, env, config.load(bank, env))
    assert config.load(bank, env).extra_paths == ("../notes",)
    assert config.load(other, env).extra_paths == ()


def test_a_link_in_the_bank_that_leads_elsewhere_is_asked_for_again(
    tmp_path: Path, env: dict[str, str]
) -> None:
    """A pull can change where it leads, and not a byte of the settings."""
    bank = tmp_path / "bank"
    (bank / "notes").symlink_to(tmp_path / "shared")
    write(bank, 'extraPaths = ["notes"]\n')
    config.trust(bank, env, config.load(bank, env))
    assert config.load(bank, env).extra_paths == ("notes",)
    (bank / "notes").unlink()
    (bank / "notes").symlink_to(tmp_path / "private")
    assert config.load(bank, env).extra_paths == ()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"banks": 3}', b'{"banks": {"one": 7}}', b"\xff"])
def test_a_broken_memory_of_trust_trusts_nothing(tmp_path: Path, env: dict[str, str], data: bytes) -> None:
    bank, folder = tmp_path / "bank", config.user_folder(env)
    write(bank, 'id = "one"\nstrip = ["x"]\n')
    assert folder
    folder.mkdir(parents=True)
    (folder / "trusted.json").write_bytes(data)
    assert config.load(bank, env).strip == ()
    config.trust(bank, env, config.load(bank, env))
    assert config.load(bank, env).strip == ("x",)
    assert stat.S_IMODE((folder / "trusted.json").stat().st_mode) == 0o600


def test_a_link_into_dotfiles_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "config.toml").symlink_to(tmp_path / "dotfiles" / "mine.toml")
    config.save(tmp_path / "config.toml", b"a = 1\n")
    assert (tmp_path / "config.toml").is_symlink()
    assert (tmp_path / "dotfiles" / "mine.toml").read_bytes() == b"a = 1\n"


# -- what cannot be read, where nothing may be lost for it ---------------------------------------------------


def test_a_lenient_reading_goes_on_with_all_that_can_be_read(tmp_path: Path, env: dict[str, str]) -> None:
    bank = tmp_path / "bank"
    write(bank, 'id = "one"\ntrail = "own"\n\n[core]\ntokens = "many"\nblock_tokens = 7\n')
    of_user(env, "flush.threshold = []\n")
    env["UA_CONTEXT_WINDOW"] = "wide"
    found = config.load(bank, env, lenient=True)
    assert (found.id, found.own, found.core_tokens, found.core_block_tokens) == ("one", True, 4000, 7)
    assert (found.truncation_threshold, found.context_window) == (150_000, 200_000)
    told = sorted(text.partition(" ")[0] for text in found.problems)
    user = f"{tmp_path}/mine/ua-memory/config.toml:1:"
    assert told == sorted([f"{bank}/ua-memory.toml:5:", user, "UA_CONTEXT_WINDOW:"])


@pytest.mark.parametrize(
    "text", ["search.limit = \n", "a = 1\na = 2\n", "[core\n", 'mission = "a\n', 'x = """\n']
)
def test_which_bank_it_is_is_known_though_its_file_is_broken(tmp_path: Path, text: str) -> None:
    write(tmp_path, f"# mine\nid = \"k7m2\"  # by init\ntrail = 'own'\n{text}")
    found = config.load(tmp_path, {}, lenient=True)
    assert (found.id, found.trail) == ("k7m2", "own") and len(found.problems) == 1
    assert found.problems[0].startswith(f"{tmp_path}/ua-memory.toml:")


def test_the_clock_goes_by_the_bank_s_timezone() -> None:
    now = Config(timezone="Pacific/Kiritimati").clock()()
    assert now.utcoffset() == datetime.now(UTC).astimezone(now.tzinfo).utcoffset()
    assert now.utcoffset() and now.utcoffset().total_seconds() == 14 * 3600  # type: ignore[union-attr]
    assert Config().clock()().tzinfo is not None


def test_so_many_trusted_values_are_kept(tmp_path: Path, env: dict[str, str]) -> None:
    bank = tmp_path / "bank"
    for number in range(config.MOST_TRUSTED + 1):
        write(bank, f'id = "one"\nstrip = ["{number}"]\n')
        config.trust(bank, env, config.load(bank, env))
    assert config.load(bank, env).strip
    write(bank, 'id = "one"\nstrip = ["1"]\n')
    assert config.load(bank, env).strip
    write(bank, 'id = "one"\nstrip = ["0"]\n')
    assert not config.load(bank, env).strip
