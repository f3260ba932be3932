"""What a command prints as a place or an id, any command takes; an id that was typed belongs to its file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from banks import DAY, NOON, Bank, new_bank
from terminal import Shell, new_shell

from ua_memory.knowledge import observations
from ua_memory.knowledge import statements as excerpts
from ua_memory.knowledge.observations import ProofText as Ground
from ua_memory.knowledge.statements import NamedTarget as Named
from ua_memory.markdown import document as markdown
from ua_memory.mcp.tools import Caller, call_tool
from ua_memory.memory import Memory
from ua_memory.paths import LinkNames
from ua_memory.records import Fact
from ua_memory.upkeep.forget import is_forgotten

K = "k7m2q9x4tb"
SAID = "Alice chooses providers by their price."
NOTES = {"plan": "The plan costs 1000.", "trip": "The trip costs 200.", "house": "Rent is 900."}


# -- forms -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (f"^{K}", Named(id=K)),
        (f"{DAY}:3", Named(DAY, "3")),
        (f"{DAY}:3-5", Named(DAY, "3-5")),
        (f"{DAY}:3: this is wrong", Named(DAY, "3")),
        (f"{DAY}#L3", Named(DAY, "3")),
        (f"{DAY}#L3-L5", Named(DAY, "3-5")),
        (f"{DAY}#L3-5", Named(DAY, "3-5")),
        (f"{DAY}#^{K}", Named(DAY, id=K)),
        (f"{DAY}#0123456789abcdef", Named(DAY, texthash="0123456789abcdef")),
        (f"[[2026-11-21#^{K}]]", Named("2026-11-21", id=K)),
        (f'[[memory/x#^{K}|as said]] "the words"', Named("memory/x", id=K)),
        (f"![[x#^{K}]]", Named("x", id=K)),
        (f"[[#^{K}]]", Named(id=K)),
        ("[[infra]]", Named("infra")),
        (f"[it]({DAY}#L3)", Named(DAY, "3")),
        (f"[{DAY}#L3-L5 ^{K}]", Named(DAY, id=K)),
        (f"^{K}  {DAY}:3", Named(DAY, id=K)),
        ("infra:8", Named("infra", "8")),
        ("/elsewhere/a.md#L3", Named("/elsewhere/a.md", "3")),
        ("memory/at 12:30.md", Named("memory/at 12:30.md")),
        ("memory/c#.md#L2", Named("memory/c#.md", "2")),
    ],
)
def test_each_form_is_read_also_with_the_signs_around_it(given: str, meant: Named) -> None:
    assert excerpts.parse_target(given) == meant
    for around in ("{}", " {} ", '"{}"', "`{}`", "({})", "“{}”", "'{}',", "({}).", "{};", "{}:"):
        assert excerpts.parse_target(around.format(given)) == meant, around


# -- all that is printed -----------------------------------------------------------------------------------

PRINTS = (
    "search Alice providers", "recall Alice providers", "log", "log --each", "status", "verify", "list",
    "observations list", "pages list", "pages get alice", f"blame {DAY}", "diff HEAD", "scan",
    "forget --query providers --dry-run", "why alice:9", "search Alice --json", "log --json",
    "why alice --json", "observations list --json", "forget --query providers --dry-run --json",
    "status --json", "search --explain Alice", "get ^budget",
)  # fmt: skip
FORMS = re.compile(
    r"\[\[[^\]\n]+#\^[^\]\n]+\]\]"
    r"|\[memory/\S+ \^[A-Za-z0-9-]+\]"
    r"|(?:[ab]/)?(?:memory/[\w/.-]+?|MEMORY)\.md(?:#\^[\w-]+|#L\d+(?:-L\d+)?|#[0-9a-f]{8,}|:\d+(?:-\d+)?)?"
    r"|(?<![\w\[(^\\])\^[A-Za-z0-9-]{4,}"
)


@pytest.fixture
def full(tmp_path: Path) -> Shell:
    """A bank with facts, hand-written lines, observations, a page, a document and an id that notes share."""
    shell = new_shell(tmp_path)
    for day in ("2026-11-10", "2026-11-12"):
        shell.write(f"memory/{day}.md", f"- {SAID[:-1]}{', always' * (day > '2026-11-11')}.\n")
    for name, text in NOTES.items():
        shell.write(f"memory/{name}.md", f"# {name}\n\n- {text} ^budget\n")
    shell.ok("insert", "Alice pays her providers by card.")
    shell.ok("insert", "Alice has three providers.\n\nOne of them is Fly.io.", "--tag", "infra")
    shell.ok("retain", "Alice likes providers from Berlin.", "--document-id", "letter")
    shell.ok("pages", "create", "alice", "--query", "what about Alice and her providers")
    shell.ok("consolidate")
    shell.write("memory/2026-11-13.md", "- Alice was here, not committed yet.\n")
    return shell


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", ["get", "blame", "log", "why", "forget"])
def test_every_form_that_is_printed_is_taken_by_every_command(full: Shell, verb: str) -> None:
    printed: dict[str, str] = {}
    for line in PRINTS:
        done = full(*line.split())
        said = (
            done.err
            + done.out
            + (json.dumps(json.loads(done.out), ensure_ascii=False) if "--json" in line else "")
        )
        printed |= dict.fromkeys(FORMS.findall(said), line)
    forms = {re.sub(r"[\w/.-]*\w", "x", form) for form in printed}
    assert {"[[x#^x]]", "x#x", "x:x", "^x", "x#^x", "x"} <= forms, sorted(forms)
    assert printed.pop("^budget"), "three notes have it, and who names it alone is asked which"
    for form, line in sorted(printed.items()):
        if verb == "forget" and form.endswith(".md"):
            continue
        code = full(verb, form, *(["--dry-run"] if verb == "forget" else [])).code
        # A chain that does not hold is told with 4 or 12; `why` of a title finds nothing said there.
        assert code == 0 or (verb == "why" and code in (4, 12)), (line, verb, form, full(verb, form).err)


def test_documents_pages_and_links_are_names_of_files(full: Shell) -> None:
    whole = full.ok("get", "memory/pages/alice.md").out
    for name in ("alice", "[[alice]]", "pages/alice", "memory/pages/alice", "a/memory/pages/alice.md"):
        assert full.ok("get", name).out == whole
    assert "Berlin" in full.ok("get", "letter").out
    root = str(full.cwd)
    assert full.ok("get", f"{root}/memory/plan.md#L3").out == full.ok("get", "plan:3").out
    revision = full.ok("log", "-n", "1", "--json").json["revisions"][0]["revision"]
    done = full("get", revision[:7])
    assert done.code == 2 and f"ua-memory diff {revision[:7]}" in done.err
    assert full.ok("diff", f"({revision[:7]})").out


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name",
    ["../b/memory/plan.md", "memory/../memory/plan", "/x/memory/plan.md", "memory/.git/plan", "nobody"],
)
def test_no_name_leads_out_of_the_bank_or_to_a_file_it_does_not_name(full: Shell, name: str) -> None:
    """I63"""
    for verb in ("get", "blame", "why", "forget"):
        assert full(verb, name).code in (2, 4)


def test_an_agent_reads_by_the_forms_it_was_given(full: Shell) -> None:
    with Memory.open(full.cwd) as memory:

        def read(path: str) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(call_tool(memory, "memory_get", {"path": path}, Caller())[0])
            return found

        assert (
            read("memory/plan.md#L3")["text"] == read("plan#^budget")["text"] == f"- {NOTES['plan']} ^budget"
        )
        assert read("ua-memory.toml")["status"] == "error"
        assert "plan.md#^budget" in read("^budget")["action"]


# -- ids that a person typed -------------------------------------------------------------------------------


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    bank = new_bank(tmp_path / "bank")
    for name, text in NOTES.items():
        bank.write(f"# {name}\n\n- {text} ^budget\n", f"memory/{name}.md")
    bank.store.adopt()
    return bank


def fact(bank: Bank, name: str) -> Fact:
    path = f"memory/{name}.md"
    return markdown.parse(bank.bytes(path), path).of(Fact)[0]


def believed(bank: Bank, *names: str) -> str:
    grounds = [Ground(fact(bank, name), NOTES[name]) for name in names]
    with bank.store.revision("consolidate", door="test") as draft:
        return str(observations.add(draft, f"On {names[0]}.", grounds, today=NOON.date()).id)


def test_an_id_that_was_typed_may_stand_in_every_file_and_commands_ask_which(full: Shell) -> None:
    """I35"""
    assert "budget" not in full("verify").out
    for verb in ("get", "blame", "why", "forget"):
        done = full(verb, "^budget")
        assert done.code == 2 and "3 statements have this id" in done.err
        assert all(f"memory/{name}.md#^budget" in done.err for name in NOTES)
    assert full.ok("get", "trip#^budget").out == f"- {NOTES['trip']} ^budget\n"
    assert full("get", "[[nowhere#^budget]]").code == 4
    for name in NOTES:  # each in a revision of its own
        full.write(f"memory/{name}.md", f"# {name}\n\n- {NOTES[name]} Now. ^budget\n")
        full.ok("forget", f"{name}:1")
    paths = [one["paths"] for one in full.ok("log", "trip#^budget", "--json").json["revisions"]]
    assert paths and all("memory/trip.md" in each for each in paths)


def test_forgetting_one_leaves_the_others_and_what_rests_on_them(there: Bank) -> None:
    on_trip, on_plan = believed(there, "trip"), believed(there, "plan")
    both = believed(there, "house", "trip")
    memory = Memory(there.store)
    assert memory.health.verify() == [] and memory.history.why(f"^{both}").breaks == ()
    done = memory.forget("memory/trip.md#^budget", take=True)
    assert {piece.id for piece in done.plan.gone} == {"budget", on_trip}
    every = [each.observation for each in memory.observations.list()]
    left = {each.id: [proof.file for proof in each.proofs] for each in every}
    assert left == {on_plan: ["plan"], both: ["house"]}
    assert memory.health.verify() == []
    assert all(NOTES[name] in there.text(f"memory/{name}.md") for name in ("plan", "house"))
    there.write("# trip\n\n- Another trip. ^budget\n", "memory/trip.md")
    assert memory.health.verify() == [], "the id is its owner's, who may give it to something else"
    there.write(f"# trip\n\n- {NOTES['trip']} ^budget\n", "memory/trip.md")
    assert [str(each) for each in memory.health.verify()] == [
        "memory/trip.md:3: ^budget was forgotten and is here again"
    ]


def test_a_citation_of_a_typed_id_means_the_one_in_its_file(there: Bank) -> None:
    believed(there, "trip")
    there.edit(NOTES["trip"], "It is off.", "memory/trip.md")
    assert len(Memory(there.store).health.verify()) == 1, "another file's ^budget is no proof of it"
    there.edit("It is off. ^budget", "It is off.", "memory/trip.md")
    assert "does not exist" in str(Memory(there.store).health.verify()[0])


def test_a_typed_id_is_purged_with_what_it_said_alone(there: Bank) -> None:
    memory = Memory(there.store)
    memory.forget("trip#^budget", take=True)
    assert is_forgotten(there.store, "memory/trip.md#^budget") and not is_forgotten(
        there.store, "plan#^budget"
    )
    planned = memory.purges.plan("trip#^budget")
    assert not planned.unknown and memory.purges.run(planned, there.root.parent / "old.bundle").proof.is_clean
    every = b"".join(data or b"" for data in there.store.history.read_all(
        [(one.id, "memory/trip.md") for one in there.store.history.log()]))  # fmt: skip
    assert b"200" not in every
    assert memory.get("plan#^budget").text == f"- {NOTES['plan']} ^budget"


# -- links in a vault --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bank", "note", "marker", "named"),
    [
        ("bank", "Daily/2026-11-21.md", "", "memory/2026-11-21"),
        ("vault/mind", "vault/Daily/2026-11-21.md", "vault/.obsidian", "mind/memory/2026-11-21"),
        ("vault/mind", "vault/Daily/2026-11-22.md", "vault/.obsidian", "2026-11-21"),
        ("vault/mind", "vault/Daily/2026-11-21.md", "", "2026-11-21"),
        ("bank", ".trash/2026-11-21.md", "", "2026-11-21"),
    ],
)
def test_a_link_names_the_path_where_another_note_of_the_vault_has_the_name(
    tmp_path: Path, bank: str, note: str, marker: str, named: str
) -> None:
    there = new_bank(tmp_path / bank)
    top = tmp_path / bank if bank == "bank" else tmp_path
    (top / note).parent.mkdir(parents=True, exist_ok=True)
    (top / note).write_text("# another\n")
    if marker:
        (tmp_path / marker).mkdir()
    said = there.insert(SAID).fact
    with there.store.revision("consolidate", door="test") as draft:
        made = observations.add(draft, "On price.", [Ground(said, SAID)], today=NOON.date())
    assert made.proofs[0].file == named
    memory = Memory(there.store)
    assert memory.health.verify() == [] and memory.history.why(f"^{made.id}").breaks == ()
    assert memory.get(f"[[{named}#^{said.id}]]").text == memory.get(f"^{said.id}").text
    memory.forget(f"[[{named}#^{said.id}]]")
    assert memory.observations.list() == [] and memory.health.verify() == []


def test_a_huge_vault_is_not_walked_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinkNames, "MOST", 3)
    for number in range(9):
        (tmp_path / f"note{number}.md").write_text("x")
    assert LinkNames(tmp_path)("memory/a.md") == "a"
    (tmp_path / ".obsidian").mkdir()
    assert LinkNames(tmp_path)("memory/a.md") == "memory/a"
