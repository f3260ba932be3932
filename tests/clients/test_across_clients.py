"""The main promise between real clients: what was said in one is known in a new session of another. No key.

One client hears seven turns of plain chat. A new session of another client in the same project is asked six
questions in other words. At least five answers must stand in what its model was sent, in a block of ours.
"""

from __future__ import annotations

import contextlib
import html
import json
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from real_claude import ClaudeCode, talk, tell
from real_clients import Codex, Hermes, OpenClaw, Pi
from real_gemini import Gemini

pytestmark = [pytest.mark.client, pytest.mark.slow, pytest.mark.timeout(600)]

SAID = (
    "morning! careful with the databases: staging listens on 6543, the one on 6432 is the replica of prod",
    "btw we decided to drop celery, the jobs run on plain cron now. the broker died every week",
    "and never deploy on fridays, whoever is on call is alone then",
    "I prefer pnpm over npm in this repo, pls no package-lock.json",
    "Marta Lindqvist from ops signs off anything that touches the ingress",
    "the demo for the customer is on 9 December, we freeze two days before",
    "ok thx, that's all for now. lunch",
)
ASKED = {
    "which port do i need for psql on stage?": "6543",
    "how are background jobs started these days?": "plain cron",
    "can we ship the release this friday afternoon?": "never deploy on friday",
    "how do i install a new package here?": "pnpm",
    "who has to approve a change of the ingress rules?": "Marta Lindqvist",
    "when do we show it to the customer?": "9 December",
}
MUST = 5
AT_START = ("core", "pages", "rules", "sessions", "facts", "session")
"""Kinds of our blocks that a session is given at its start; a prompt's hook gives the others."""
SOON = 2.0
"""Seconds after which what was said must be known with a daemon."""

CLIENTS: dict[str, Callable[..., Any]] = {
    "claude-code": ClaudeCode, "codex": Codex, "gemini": Gemini,
    "hermes": Hermes, "openclaw": OpenClaw, "pi": Pi,
}  # fmt: skip
OTHERS = tuple(name for name in CLIENTS if name != "claude-code")
PAIRS = [*((other, "claude-code") for other in OTHERS), *(("claude-code", other) for other in OTHERS)]


@contextlib.contextmanager
def session(client: Any) -> Iterator[Callable[[str], object]]:
    """A session of a client: what it yields says one thing, and returns once that is answered. It ends as its
    user ends it."""
    if isinstance(client, ClaudeCode):
        with talk(client) as process:
            yield partial(tell, process)
            assert process.stdin
            process.stdin.close()
            process.wait(30)
    elif isinstance(client, Pi):
        with client.talk() as do:
            yield lambda text: do("prompt", message=text)
    elif isinstance(client, OpenClaw):
        reset = json.dumps({"key": "agent:main:main", "reason": "new"})
        with client.gateway():
            yield client.says
            client.does("gateway", "call", "sessions.reset", "--params", reset)
    else:
        yield a_run_each(client)


def a_run_each(client: Any) -> Callable[[str], object]:
    """Says each thing in a run of its own, which resumes the run before."""
    before, after = {"Codex": (("resume", "--last"), ()), "Gemini": ((), ("--resume", "latest"))}.get(
        type(client).__name__, ((), ("--continue",))
    )
    said: list[str] = []

    def says(text: str) -> object:
        words = (*before, text, *after) if said else (text,)
        said.append(text)
        return client.says(*words)

    return says


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(each)


def blocks(client: Any, question: str) -> set[tuple[str, str]]:
    """Kind and text of our blocks in the requests that were the first to have a question."""
    bodies = [each["body"] for each in client.fake.requests if each["body"]]
    sent = [html.unescape("\n".join(strings(body))) for body in bodies]  # Gemini escapes what hooks give it
    later = list(ASKED)[list(ASKED).index(question) + 1 :]
    sent = [text for text in sent if question in text and not any(each in text for each in later)]
    assert sent, f"its model was never asked: {question}"
    pattern = r'<ua-memory-recall kind="(\w+)">\n(.*?)\n</ua-memory-recall>'
    return {found for text in sent for found in re.findall(pattern, text, re.DOTALL)}


def ways(client: Any) -> dict[str, list[str]]:
    """For each question, how its answer reached the model: at the session's 'start', by the 'prompt', or
    'earlier', by another prompt of the session."""
    found: dict[str, list[str]] = {}
    known: set[tuple[str, str]] = set()
    for question, answer in ASKED.items():
        given = blocks(client, question)
        has = {block for block in given if answer.lower() in block[1].lower()}
        start = {block for block in has if block[0] in AT_START}
        told = {"start": start, "prompt": has - start - known, "earlier": (has - start) & known}
        found[question] = [way for way, some in told.items() if some]
        known |= given
    return found


@pytest.mark.parametrize(("speaker", "asker"), PAIRS)
def test_what_one_client_was_told_another_knows(tmp_path: Path, speaker: str, asker: str) -> None:
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(CLIENTS[name](tmp_path, [], {"text": "Alright."}, daemon="auto"))
            for name in (speaker, asker)
        )
        with session(first) as says:
            for text in SAID:
                says(text)
        time.sleep(SOON)
        with session(second) as says:
            for question in ASKED:
                says(question)
        found = ways(second)
        reached = sum(map(bool, found.values()))
        print(f"{speaker} -> {asker}: {reached}/{len(ASKED)}", *found.items(), sep="\n  ")
        assert reached >= MUST, f"{found}\n{first.memory()}\n{first.log()}"
