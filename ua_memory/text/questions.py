"""What a query asks, by its words: a question, two of them, a task list, a chore, or who somebody is that it
only describes."""

from __future__ import annotations

import re
from collections import namedtuple

from ua_memory.text.patterns import Phrases, late

# -- questions and chores ----------------------------------------------------------------------------------


AT_THE_MOMENT = (
    r"currently|nowadays|these\s+days|at\s+the\s+moment|derzeit|zurzeit|im\s+moment|actuellement|en\s+ce\s+moment"
    r"|actualmente|hoy\s+en\s+día|en\s+este\s+momento|atualmente|hoje\s+em\s+dia|neste\s+momento|de\s+momento"
    r"|attualmente|oggigiorno|in\s+questo\s+momento|al\s+momento|tegenwoordig|momenteel|op\s+(?:dit|het)\s+moment"
)
"""Asks for how it is now, and says nothing of what a question is about."""

BEFORE_NOW = (
    r"previously|formerly|back\s+then|früher|vorher|ehemals|damals|auparavant|autrefois|précédemment|antiguamente|antaño"
    r"|anteriormente|antigamente|outrora|(?:antes|prima|avant|before|eerder|daarvoor|ervoor)(?=\W*\Z)|precedentemente"
    r"|in\s+passato|un\s+tempo|vroeger|voorheen|hiervoor|destijds"
)
"""Asks for how it was before, likewise."""

PHRASES = Phrases("question_phrases.txt", re.IGNORECASE)
"""How people ask, order and describe somebody."""


def is_question(prompt: str) -> bool:
    """Whether a prompt is a question."""
    return PHRASES["question"].search(prompt) is not None


def begins_question(text: str) -> bool:
    """Whether a text begins with a question word."""
    return PHRASES["beginning"].match(text) is not None


def is_request(prompt: str) -> bool:
    """Whether a prompt asks for something to be done, if only in the form of a question."""
    return PHRASES["request to act"].match(prompt) is not None


def is_chore(prompt: str) -> bool:
    """Whether a prompt is about what is at hand ("explain this line", "sort the imports"), and so seldom
    needs what was said before."""
    return PHRASES["chore"].search(prompt) is not None


def is_order(prompt: str) -> bool:
    """Whether a prompt is nothing but an order about what is at hand, and names nothing: "run the tests",
    "thanks, commit", "no, the other one"."""
    return PHRASES["order"].fullmatch(prompt) is not None


# -- telephone numbers -------------------------------------------------------------------------------------


_NUMBER = late(r"numbers?|nummer|n[uú]mero|numéro", re.IGNORECASE)
_PHONE_NUMBER = late(
    r"(?<![\w.,:/-])(?!\d{4}-\d\d-\d\d|\d\d?[-/]\d\d?[-/]\d{4})(?:\+|\(?0|(?=[1-9]))"
    r"(?:(?=(?:\W?\d){8})[\d()]+(?:[ /-]{1,2}[\d()]+){0,6}|\d{3}-\d{4}|\d?(?:\.?\d\d){4})(?![\w.,]?\d)"
)


def phone_words(words: list[str]) -> list[int]:
    """The places of a query's words that ask for a telephone number: `phone number`, `Handynummer`."""
    asking = any(map(PHRASES["phone"].fullmatch, words))
    return (
        [n for n, word in enumerate(words) if PHRASES["phone"].fullmatch(word) or _NUMBER.fullmatch(word)]
        if asking
        else []
    )


def has_phone_number(text: str) -> bool:
    return _PHONE_NUMBER.search(text) is not None


# -- two questions -----------------------------------------------------------------------------------------


_NAMES = late(r"(?<=\w\s)[^\W\d_a-zß-öø-ÿ]\w+(?:\s+[^\W\d_a-zß-öø-ÿ]\w+)*")


def two_questions(query: str) -> tuple[str, str] | None:
    """The two questions of a query. A pronoun in the second stands for whom the first describes or names, or
    for the thing that it ends with."""
    found = PHRASES["two questions"].fullmatch(query)
    if found is None or PHRASES["no question"].search(found["one"]):
        return None
    one, other = found["one"], found["other"]
    described, thing, names = find_description(one), PHRASES["thing"].search(one), _NAMES.findall(one)
    meant = thing[0] if thing else names[0] if len(names) == 1 else ""
    meant = f"the {described.clause}" if described and described.after is not None else meant
    return one, " ".join(PHRASES["of the first"].sub(f" {meant}", other, count=1).split()) if meant else other


# -- task lists --------------------------------------------------------------------------------------------


def asks_for_tasks(query: str) -> tuple[str, str] | None:
    """("todo" or "done", the rest of a query) if it asks for the open or finished items of task lists."""
    for kind, pattern in (("todo", PHRASES["open tasks"]), ("done", PHRASES["done tasks"])):
        if found := pattern.search(query):
            return kind, (query[: found.start()] + query[found.end() :]).strip(" ?!.")
    return None


def with_plain_tag(query: str) -> str:
    """A query with the tag that it asks for in words as `#tag`: "things with the tag garden in May"."""
    return PHRASES["tagged"].sub(r"#\g<tag>", query, count=1)


# -- descriptions ------------------------------------------------------------------------------------------


Description = namedtuple("Description", ("before", "clause", "after"))
"""The `clause` or role by which a query describes somebody instead of naming them, with what stands `before`
it; `after` is what follows a role, and None if the description is a relative clause."""


def find_description(query: str) -> Description | None:
    """How a query describes somebody."""
    found = PHRASES["description"].search(query) or PHRASES["named role"].search(query)
    return found and Description(query[: found.start()], found["clause"], found.groupdict().get("after"))


def asks_more(described: Description) -> bool:
    """Whether a query asks for more than who is described."""
    if described.after is None:  # what is asked may stand in it: "what is the man who fell allergic to"
        return not PHRASES["who is"].fullmatch(described.before)
    return not all(map(PHRASES["asks who"].fullmatch, re.findall(r"\w+", described.before + described.after)))


def replace_description(described: Description, name: str, hit: str) -> str:
    """A query with a name in place of a description. The last words of a clause that are not in its hit
    are part of the question: "allergic to" in "what is the man who fell allergic to"."""
    before, clause, after = described
    if after is not None:
        return " ".join([*before.split(), name, *after.split()])
    text, words = hit.casefold(), clause.split()
    known = [n for n, word in enumerate(words) if len(word) > 2 and word_stem(word) in text]
    rest = words[known[-1] + 1 :] if known else words
    if not known or (rest and PHRASES["preposition"].match(rest[0])):
        rest = rest[-1:] if PHRASES["auxiliary"].search(before) else []
    return " ".join([*before.split(), name, *rest])


def word_stem(word: str) -> str:
    """The beginning that the forms of a word share: without a plural s all but two letters, at least four."""
    if len(word) > 3 and not word.endswith(("is", "ss", "us")):
        word = word.removesuffix("s")
    return word[: max(4, len(word) - 2)].casefold()
