"""Scopes: tags in four modes and in groups, the places that stand in them, what a hook may let through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index_bank import a_bank, an_index, log
from terminal import Shell, new_shell

from ua_memory.config import MATCHES
from ua_memory.errors import Usage
from ua_memory.index.filters import DEEPEST, Filters, read_groups
from ua_memory.index.sync import Index
from ua_memory.recall.search import search
from ua_memory.text.wording import fill_groups, fill_tags

FACTS = log("oats a #red", "oats b #red #blue", "oats c #blue/dark", "oats d", "oats e #green")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with an_index(a_bank(tmp_path_factory.mktemp("bank"), {"memory/2026-11-21.md": FACTS})) as opened:
        yield opened


def found(index: Index, filters: Filters) -> str:
    """The letters of the facts that come through."""
    hits = search(index, "oats", limit=50, filters=filters).hits
    return "".join(sorted(hit.item.text.split()[1] for hit in hits))


@pytest.mark.parametrize(
    ("match", "expected"),
    [("any", "abcd"), ("all", "bd"), ("any_strict", "abc"), ("all_strict", "b"), ("exact", "b")],
)
def test_the_five_modes(index: Index, match: str, expected: str) -> None:
    assert found(index, Filters(tags=("#Red", "blue"), match=match)) == expected
    assert found(index, Filters(match=match)) == ("d" if match == "exact" else "abcde")


def test_exact_means_these_tags_and_no_other(index: Index) -> None:
    assert found(index, Filters(tags=("red",), match="exact")) == "a"
    assert found(index, Filters(tags=("blue",), match="exact")) == "", "blue/dark is another tag"
    assert found(index, Filters(groups=read_groups([{"not": {"tags": [], "match": "exact"}}]))) == "abce"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([{"tags": ["red"]}], "ab"),
        ([{"tags": ["red"]}, {"not": {"tags": ["blue"]}}], "a"),
        ([{"or": [{"tags": ["green"]}, {"tags": ["red", "blue"], "match": "all_strict"}]}], "be"),
        ([{"and": [{"tags": ["red"], "match": "any"}, {"not": {"tags": ["blue"]}}]}], "ad"),
        ([{"not": {"not": {"tags": ["blue"]}}}], "bc"),
        ([{"tags": []}, {"or": []}, {"not": {"tags": []}}], "abcde"),
        ([], "abcde"),
    ],
)
def test_groups(index: Index, groups: Any, expected: str) -> None:
    assert found(index, Filters(groups=read_groups(groups))) == expected


def test_tags_and_groups_must_both_hold(index: Index) -> None:
    groups = read_groups([{"not": {"tags": ["blue"]}}])
    assert found(index, Filters(tags=("red",), groups=groups)) == "a"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tags": ["a"]},
        ["a"],
        [{}],
        [{"tags": "a"}],
        [{"tags": [1]}],
        [{"tags": ["a"], "match": "most"}],
        [{"tags": ["a"], "or": []}],
        [{"and": {"tags": ["a"]}}],
        [{"not": []}],
        json.loads('[{"not": ' * DEEPEST + '[{"tags": ["a"]}]' + "}]" * DEEPEST),
        [{"or": [{"tags": ["a"] * 201}]}],
    ],
)
def test_what_is_no_group_is_refused(wrong: Any) -> None:
    with pytest.raises(Usage):
        read_groups(wrong)


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(Usage, match="most"):
        Filters(tags=("a",), match="most")
    assert [Filters(match=each).match for each in MATCHES] == list(MATCHES)


KNOWN = {"session": "8f2c", "parent": "", "cwd": "/work/api", "basedir": "api", "project": "shop"}


def test_places_are_filled_in() -> None:
    tags = ["{project}", "team:{project}/{basedir}", "{cwd}", "{parent}", "x{parent}", "plain", "{other}"]
    assert fill_tags(tags, KNOWN) == ["project:shop", "team:shop/api", "cwd:/work/api", "plain", "{other}"]
    groups = [{"or": [{"tags": ["{session}", "a"], "match": "any"}, {"not": {"tags": ["{parent}"]}}]}]
    done = [{"or": [{"tags": ["session:8f2c", "a"], "match": "any"}, {"not": {"tags": []}}]}]
    assert fill_groups(groups, KNOWN) == done


# -- the doors ---------------------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    for text, *tags in (
        ("Deploys of the shop go out each Monday", "project:shop"),
        ("Deploys of the blog go out each Friday", "project:blog"),
        ("Deploys need two reviews",),
    ):
        shell.ok("insert", text, *(word for tag in tags for word in ("--tag", tag)))
    return shell


def texts(answer: Any) -> set[str]:
    """The last words of the facts that were found; core memory, which has no tags, is left aside."""
    return {hit["snippet"].split()[-1] for hit in answer["results"] if hit["path"] != "MEMORY.md"}


@pytest.mark.parametrize("verb", ["search", "recall"])
def test_the_options(shell: Shell, verb: str) -> None:
    def said(*argv: str) -> set[str]:
        return texts(shell.ok(verb, "deploys", *argv, "--json").json)

    assert said("--tag", "project:shop") == {"Monday"}
    assert said("--tag", "project:shop", "--tags-match", "any") == {"Monday", "reviews"}
    assert said("--tag-groups", '[{"not": {"tags": ["project:shop"]}}]') == {"Friday", "reviews"}
    assert said("--since", "2026-11-22") == said("--until", "2026-11-20") == said("--source", "web") == set()
    assert len(said("--since", "today", "--source", "agent", "--kind", "world")) == 3
    (shell.cwd / "shop" / ".git").mkdir(parents=True)
    (shell.cwd / "shop" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (shell.cwd / "shop" / "src").mkdir()
    shell.env["UA_MEMORY_BANK"], shell.cwd = str(shell.cwd), shell.cwd / "shop" / "src"
    assert said("--tag", "{project}") == {"Monday"}
    assert said("--tag", "{session}") == {"Monday", "Friday", "reviews"}  # nobody knows of one
    for bad in (("--tags-match", "most", "--tag", "a"), ("--tag-groups", "{"), ("--tag-groups", "3")):
        assert shell(verb, "deploys", *bad).code == 2


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", {"Monday", "Friday", "reviews"}),
        ('autoRecallTags = ["{project}"]', {"Monday", "reviews"}),
        ('autoRecallTags = ["{project}"]\nautoRecallTagsMatch = "any_strict"', {"Monday"}),
        ('autoRecallTags = ["session:{session}"]\nautoRecallTagsMatch = "all_strict"', set()),
        ('autoRecallTagGroups = \'[{"not": {"tags": ["{project}"]}}]\'', {"Friday", "reviews"}),
    ],
)
def test_a_hook_keeps_to_its_scope(shell: Shell, settings: str, expected: set[str]) -> None:
    toml = shell.cwd / "ua-memory.toml"
    toml.write_text(f"{settings}\n{toml.read_text()}")
    (shell.home / "shop").mkdir()
    event = {
        "hook_event_name": "UserPromptSubmit",
        "prompt": "When do deploys go out, and what do they need?",
        "session_id": "8f2c",
        "cwd": str(shell.home / "shop"),
    }
    shell.ok("search", "deploys")  # so that there are vectors
    out = shell.ok("hook", stdin=json.dumps(event)).out
    assert {word for word in ("Monday", "Friday", "reviews") if word in out} == expected


# -- front matter ------------------------------------------------------------------------------------------


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "written",
    [
        "tags: [Infra/DB, people]", "tags:\n  - infra/db\n  - people", "tags: infra/db, people",
        "tags: infra/db people", 'tags: "#infra/db, #people"', 'tags: ["#infra/db", "#people"]',
        "tag: infra/db\ntags: people", "Tags: [infra/db]\nTAG: people",
    ],
)  # fmt: skip
def test_a_file_s_tags_are_those_of_all_that_stands_in_it(tmp_path: Path, written: str) -> None:
    shell = new_shell(tmp_path)
    text = f"---\n{written}\nother: [a]\n---\n\n# Kiln\n\nThe kiln of WHO is warm.\n\n- WHO filled the kiln\n"
    paths = {"Alice": "memory/kiln.md", "Bob": "memory/2026-11-20.md", "Cleo": "../notes/kiln.md"}
    for who, path in (*paths.items(), ("Dora", "../old/kiln.md")):
        shell.write(path, text.replace("WHO", who))
    shell.write("memory/cold.md", "- The kiln is cold at night #people/friends\n")
    with (shell.cwd / "ua-memory.toml").open("a") as file:
        file.write('extraPaths = ["../notes"]\n')
    shell.ok("trust", "--yes")
    shell.ok("import", "markdown", str(shell.cwd.parent / "old"))

    def found(*words: str) -> set[str]:
        hits = shell.ok("search", "kiln", "--limit", "50", "--json", *words).json["results"]
        return {hit["path"].rpartition("/home/")[2].replace("memory/", "") for hit in hits}

    tagged = found("--tag", "infra/db")
    assert {"kiln.md", "2026-11-20.md"} <= tagged and any("notes" in path for path in tagged)
    assert any("imported" in path for path in tagged) and "cold.md" not in tagged
    for tag in ("infra", "INFRA/db", "#infra/db", "people"):
        assert found("--tag", tag) >= tagged
    assert not found("--tag", "infra/d") and not found("--tag", "other") and not found("--tag", "db")
    assert found("--tag", "infra", "--tag", "people", "--tags-match", "all_strict") == tagged
    shell.write("memory/kiln.md", text.replace("people", "persons"))  # and a change of them alone counts
    assert "kiln.md" not in found("--tag", "people") - {"cold.md"} and "kiln.md" in found("--tag", "persons")
