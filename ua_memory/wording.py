"""Words that texts of every layer need alike: commits, errors, and what a model is told."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 fact`, `3 facts`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
