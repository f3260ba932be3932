"""Directives: the hard rules of a bank, a list in `ua-memory.toml`, edited as a person would."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from ua_memory import configfile
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.paths import SETTINGS
from ua_memory.store import Draft, Result, Store

LONGEST = 500
"""Characters of one directive: it stands twice in every prompt of reflect."""
MOST = 30
KEY = "directives"


def add(store: Store, text: str, *, door: str, by_person: bool = False) -> tuple[tuple[str, ...], Result]:
    """Put a rule at the end of the list, and commit: (all of them, what was done). Usage for a text that is
    no rule or one that stands there, Malformed for a file that cannot be edited."""
    text = _checked(text)
    with store.revision("directives", door=door) as draft:
        draft.by_person = by_person
        there = _read(draft)
        rule = _fresh(draft, text, there)
        if len(there) >= MOST:
            raise Usage(
                f"there are {MOST} directives, and that is the most", mend="ua-memory directives delete N"
            )
        _write(draft, there, [*there, rule])
        draft.subject = f"directives: add {len(there) + 1}"
    return (*there, rule), draft.result


def change(
    store: Store, number: int, text: str, *, door: str, by_person: bool = False
) -> tuple[tuple[str, ...], Result]:
    """Put another rule in the place of this number (from 1), and commit: (all of them, what was done).
    NotFound, and what `add` raises."""
    text = _checked(text)
    with store.revision("directives", door=door) as draft:
        draft.by_person = by_person
        there = _read(draft)
        named(there, number)
        rules = [*there[: number - 1], _fresh(draft, text, there), *there[number:]]
        _write(draft, there, rules)
        draft.subject = f"directives: change {number}"
    return tuple(rules), draft.result


def remove(
    store: Store, number: int, *, door: str, by_person: bool = False
) -> tuple[str, tuple[str, ...], Result]:
    """Take the rule of this number (from 1) out, and commit: (it, the others, what was done). NotFound."""
    with store.revision("directives", door=door) as draft:
        draft.by_person = by_person
        there = _read(draft)
        named(there, number)
        left = [*there[: number - 1], *there[number:]]
        _write(draft, there, left)
        draft.subject = f"directives: remove {number}"
    return there[number - 1], tuple(left), draft.result


def named(rules: Sequence[str], number: int) -> str:
    """The rule of this number, from 1. NotFound."""
    if not 1 <= number <= len(rules):
        raise NotFound(f"no directive {number}; there are {len(rules)}", mend="ua-memory directives list")
    return rules[number - 1]


def _checked(text: str) -> str:
    rule = " ".join(text.split())
    if not rule:
        raise Usage("there is no text", mend='ua-memory directives create "Never name a customer."')
    if len(rule) > LONGEST:
        raise Usage(f"{len(rule)} characters; a directive has at most {LONGEST}", mend="shorten it")
    return rule


def _fresh(draft: Draft, text: str, there: Sequence[str]) -> str:
    """The rule without secrets. Usage for one that stands there."""
    rule = draft.redact(text)
    if rule in there:
        raise Usage("this directive is there already", where=SETTINGS)
    return rule


def _read(draft: Draft) -> list[str]:
    try:
        found = tomllib.loads(draft.read(SETTINGS).decode("utf-8-sig")).get(KEY, [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"cannot be read: {error}", where=SETTINGS, mend="correct it") from error
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise Malformed(f"{KEY} is no list of texts", where=SETTINGS, mend="ua-memory config")
    return found


def _write(draft: Draft, before: Sequence[str], after: Sequence[str]) -> None:
    """Change the list from one to the other by one item. Malformed where anything else would change."""

    def change(document: Any) -> None:
        if not before and KEY not in document:
            document[KEY] = list(after)
        else:
            _edit(document[KEY], before, after)

    new = configfile.edited(draft.read(SETTINGS), SETTINGS, change, lambda said: {**said, KEY: list(after)})
    draft.write(SETTINGS, new, restored=True)  # the rule itself was redacted before


def _edit(there: Any, before: Sequence[str], after: Sequence[str]) -> None:
    if len(after) > len(before):
        there.append(after[-1])
    elif len(after) == len(before):
        number = next(n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b)
        there[number] = after[number]
    else:
        gone = next((n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(after))
        del there[gone]
