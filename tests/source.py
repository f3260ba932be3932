"""The syntax of the sources, read once for all tests that ask for it."""

from __future__ import annotations

import ast
import gc
from functools import cache


@cache
def nodes(source: str) -> list[ast.AST]:
    """All of a module's syntax; most tests of `test_layers` and `test_house` read every module."""
    gc.disable()  # there is none, and all that was parsed would be looked through again and again
    try:
        found: list[ast.AST] = [ast.parse(source)]
        for node in found:  # as ast.walk does, in less time
            for name in node._fields:
                value = getattr(node, name)
                if isinstance(value, list):
                    found += [each for each in value if isinstance(each, ast.AST)]
                elif isinstance(value, ast.AST):
                    found.append(value)
        gc.freeze()
    finally:
        gc.enable()
    return found
