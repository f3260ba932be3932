"""A small agent with a memory: active context, threshold, flush, reset.

    python examples/agent.py --scripted             offline, against a model that follows a script
    ANTHROPIC_API_KEY=… python examples/agent.py    against a real one; type, end with Ctrl-D

What matters is in `converse`: one line, `autoflush.step`, keeps the context short and the bank up to date.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ua_memory import AutoFlush, Memory, config

Reply = tuple[str, int]
"""What the model said, and the size of the context in tokens after it."""
Ask = Callable[[list[Any]], Reply]

STATED = [
    ("We leave Heroku for Fly.io today, because the price doubled to $1,400 a month.", "I will move it."),
    ("Alice has to approve every invoice above 500 euros from now on.", "I will ask her before I send one."),
    ("I prefer deploys before ten in the morning, never on Fridays.", "At nine, then, Monday to Thursday."),
    ("We decided to keep backups for 45 days, since Tariq needs two month ends.", "I will change the job."),
    ("The tile server runs on port 8181 from now on, 8080 belongs to Grafana.", "Noted for the proxy."),
    ("Always write dates as 2026-11-24 in reports.", "I will."),
]  # fmt: skip
BETWEEN = [
    ("Read the next file, please.", "Read."),
    ("Run its tests.", "They pass."),
    ("Go on.", "Done."),
    ("And its callers?", "Three of them, all fine."),
]
SCRIPT = [said for one in STATED for said in (one, *BETWEEN)]
"""Thirty exchanges: sixty turns."""
WORK = "(it reads files and runs commands, which fills the window) " * 6


def converse(memory: Memory, ask: Ask, typed: Iterator[str], threshold: int) -> list[Any]:
    """Talk until nobody types any more; what is still unsaved then is flushed as well. The messages that the
    model would get next."""
    autoflush = AutoFlush(
        memory,
        threshold=threshold,
        enabled=memory.config.enabled,
        client="example-agent",
        keep=threshold // 4,
    )
    messages: list[Any] = []
    for line in typed:
        messages.append({"role": "user", "content": line})
        answer, size = ask(messages)
        messages.append({"role": "assistant", "content": answer})
        print(f"you    {line}\nagent  {answer.removesuffix(WORK)}   [{size:,} tokens of context]")
        before = len(messages)
        messages = list(autoflush.step(messages, size))
        if len(messages) < before:
            print(f"       context reset: {before} messages became {len(messages)}")
            report(autoflush)
    messages = list(autoflush.flush(messages))
    report(autoflush)
    return messages


def reach(memory: Memory, messages: list[Any]) -> None:
    """Say of each thing that was stated whether the model still has it, or finds it in memory."""
    for stated, _ in STATED:
        found = memory.search(stated, limit=1).hits
        here = "in the context" if stated in str(messages) else ""
        there = "in memory" if found and stated in found[0].snippet else ""
        print(f"  {', '.join(filter(None, (here, there))) or 'LOST'}: {stated}")


def report(autoflush: AutoFlush) -> None:
    """Say what the flush kept, or why the turns wait."""
    if autoflush.error:
        print(f"       not flushed yet: {autoflush.error}")
    for fact in autoflush.flushed.facts if autoflush.flushed else ():
        print(f"       saved  {fact.text}  ^{fact.id}")


def scripted() -> Ask:
    """A model that follows the script and counts its context by words."""
    answers = dict(SCRIPT)

    def ask(messages: list[Any]) -> Reply:
        answer = f"{answers[messages[-1]['content']]} {WORK}" if messages[-1]["content"] in answers else "…"
        return answer, sum(len(str(message["content"]).split()) for message in messages)

    return ask


def anthropic_model() -> Ask:
    """The real one, without tools: the loop is what is shown here."""
    import anthropic

    client = anthropic.Anthropic()

    def ask(messages: list[Any]) -> Reply:
        model = os.environ.get("UA_MEMORY_MODEL", "claude-sonnet-5-5")
        reply = client.messages.create(model=model, max_tokens=2000, messages=messages)
        text = "".join(block.text for block in reply.content if block.type == "text")
        return text, reply.usage.input_tokens + reply.usage.output_tokens

    return ask


def lines() -> Iterator[str]:
    """What is typed at the terminal."""
    while True:
        try:
            yield input("> ")
        except EOFError:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scripted", action="store_true", help="no model, no network")
    parser.add_argument("--bank", default="", help="the bank's folder; else a new one in a temporary folder")
    parser.add_argument(
        "--threshold",
        type=int,
        help="tokens at which the context is reset; else UA_TRUNCATION_THRESHOLD, else 300",
    )
    given = parser.parse_args()
    root = given.bank or tempfile.mkdtemp(prefix="agent-memory-")
    Memory.init(root, door="example").close()
    # The library reads no environment: a program says that UA_MEMORY_ENABLED and the others are to count.
    settings = config.load(Path(root), os.environ)
    told = settings.sources["truncation_threshold"] != "default"
    threshold = given.threshold or (settings.truncation_threshold if told else 300)
    with Memory.open(root, config=settings, door="example") as memory:
        asking = scripted() if given.scripted else anthropic_model()
        typed = (line for line, _ in SCRIPT) if given.scripted else lines()
        messages = converse(memory, asking, typed, threshold)
        if given.scripted:
            print("\nWhat is within reach after all that:")
            reach(memory, messages)
        print(f"\nWhat is left in {root}:")
        for hit in memory.search("who approves invoices", limit=1).hits:
            print(f"  found  {hit.snippet}  ({hit.item.path}:{hit.item.line})")


if __name__ == "__main__":
    main()
