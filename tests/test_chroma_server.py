"""Chroma on a server: a real one on loopback, behind a door that asks for a token."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_bank import Counting, a_bank, write

from ua_memory.errors import Usage
from ua_memory.index import vectors as server
from ua_memory.index.sync import READY, Index
from ua_memory.index.vectors import Address, ServerUnavailable
from ua_memory.index.vectors import ServerConnection as Line
from ua_memory.index.vectors import ServerVectors as Shared
from ua_memory.recall.search import search
from ua_memory.store.store import Store

TOKEN = "tk-not-a-real-one"
LOG = "memory/2026-11-20.md"


class Doorkeeper:
    """Lets requests with the token through to a Chroma server; `shut` lets nobody through."""

    def __init__(self, port: int) -> None:
        keeper = self
        self.shut = False

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer = 401, b'{"error":"AuthError","message":"who are you"}'
                if keeper.shut:
                    status, answer = 503, b"{}"
                elif self.headers.get("X-Chroma-Token") == TOKEN:
                    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as behind:
                        kind = {"Content-Type": "application/json"}
                        behind.request(self.command, self.path, body or None, kind)
                        reply = behind.getresponse()
                        status, answer = reply.status, reply.read()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_DELETE = _pass

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"127.0.0.1:{self.http.server_address[1]}"
        self.url = f"http://{TOKEN}@{self.address}"


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doorkeeper]:
    folder = tmp_path_factory.mktemp("server")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    chroma = Path(sys.executable).with_name("chroma")
    said = folder / "log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [chroma, "run", "--path", folder / "data", "--host", "127.0.0.1", "--port", str(port)],
            stdout=log, stderr=log,
        )  # fmt: skip
    door = Doorkeeper(port)
    try:
        until = time.monotonic() + 30
        while not answers(port):
            assert process.poll() is None and time.monotonic() < until, said.read_text()
            time.sleep(0.05)
        yield door
    finally:
        door.http.shutdown()
        door.http.server_close()
        process.terminate()
        process.wait(10)


def answers(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=1)) as there:
            there.request("GET", "/api/v2/heartbeat")
            return there.getresponse().status == 200
    except OSError:
        return False


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, keeper: Doorkeeper) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT", 0.0)
    keeper.shut = False


def a_shared_bank(root: Path, url: str, bank_id: str, facts: str) -> Store:
    store = a_bank(root, {LOG: facts})
    store.config = replace(store.config, id=bank_id, chroma_url=url)
    return store


def found(index: Index, query: str) -> tuple[list[str], list[str]]:
    answer = search(index, query, limit=3)
    assert answer.mode == "hybrid", answer.notes
    return [hit.item.text for hit in answer.hits if "semantic" in hit.arms], list(answer.notes)


def away(keeper: Doorkeeper) -> str:
    return f"the Chroma server http://{keeper.address} does not answer"


def test_two_machines_share_a_bank_and_two_banks_a_server(tmp_path: Path, keeper: Doorkeeper) -> None:
    here = a_shared_bank(tmp_path / "here", keeper.url, "one", "- The cat sleeps in the barn\n")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    there = a_shared_bank(tmp_path / "there", keeper.url, "one", "- The dog sleeps in the house\n")
    other = a_shared_bank(tmp_path / "other", keeper.url, "two", "- The cat sleeps on the roof\n")
    indexes = [Index(store, embeds=Counting()) for store in (here, there, other)]
    try:
        for _ in range(2):
            seen = [found(index, "who sleeps")[0] for index in indexes]
            assert seen == [
                ["The cat sleeps in the barn"],
                ["The dog sleeps in the house"],
                ["The cat sleeps on the roof"],
            ]
        write(tmp_path / "here" / LOG, "- A bird sings\n")
        assert found(indexes[0], "what sings")[0] == ["A bird sings"]
        indexes[0].vectors.wipe()
        assert indexes[0].vectors.names() == set() and len(indexes[1].vectors.names()) == 1
        assert not (here.bank.index / "1/chroma").exists()
    finally:
        for index in indexes:
            index.close()


def test_while_it_is_away_the_kept_embeddings_answer(tmp_path: Path, keeper: Doorkeeper) -> None:
    store = a_shared_bank(tmp_path, keeper.url, "three", "- The cat sleeps in the barn\n")
    embeds = Counting()
    with Index(store, embeds=embeds) as index:
        assert found(index, "who sleeps") == (["The cat sleeps in the barn"], [])
        keeper.shut = True
        write(tmp_path / LOG, "- The cat sleeps in the barn\n- The owl hunts at night\n")
        texts, notes = found(index, "who hunts")
        assert texts[0] == "The owl hunts at night" and away(keeper) in notes[0] and TOKEN not in notes[0]
        assert "the embeddings kept here" in notes[0]
        keeper.shut = False
        before = embeds.seen
        texts, notes = found(index, "who hunts")
        assert texts[0] == "The owl hunts at night" and notes == []
        assert len(index.vectors.names()) == 2 and embeds.seen == before + 1  # the query alone


def test_the_same_is_found_with_it_and_without(tmp_path: Path, keeper: Doorkeeper) -> None:
    lines = "".join(
        f"- Note {n} about {['cats', 'dogs', 'owls', 'bees'][n % 4]} and {n * 7}\n" for n in range(60)
    )
    store = a_shared_bank(tmp_path, keeper.url, "four", lines)
    with Index(store, embeds=Counting()) as index:
        with_it = [found(index, query)[0] for query in ("owls", "cats and 56", "bees")]
        keeper.shut = True
        assert [found(index, query)[0] for query in ("owls", "cats and 56", "bees")] == with_it


def test_a_collection_that_was_lost_is_filled_again(tmp_path: Path, keeper: Doorkeeper) -> None:
    store = a_shared_bank(tmp_path, keeper.url, "five", "- The cat sleeps in the barn\n")
    with Index(store, embeds=Counting()) as index:
        assert found(index, "who sleeps")[0]
        line = Line(keeper.url)
        (name,) = [each.name for each in line.client().list_collections() if "-five-" in each.name]
        line.client().delete_collection(name)
        line.close()
        found(index, "who sleeps")  # the connection finds out that its collection is gone
        assert found(index, "who sleeps") == (["The cat sleeps in the barn"], [])
        assert len(index.vectors.names()) == 1


def test_without_the_right_token_it_is_away(tmp_path: Path, keeper: Doorkeeper) -> None:
    store = a_shared_bank(tmp_path, keeper.url.replace(TOKEN, "wrong-one"), "six", "- The cat sleeps\n")
    with Index(store, embeds=Counting()) as index:
        texts, notes = found(index, "who sleeps")
        assert texts == ["The cat sleeps"] and "401" in notes[0] and "wrong-one" not in "".join(notes)


def test_a_server_that_was_never_there_costs_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT", 30.0)
    line = Line("http://127.0.0.1:9")
    for _ in range(2):
        with pytest.raises(ServerUnavailable, match="does not answer"):
            Shared(line, "seven", "m", "minilm-int8", tmp_path / "mark")
    store = a_shared_bank(tmp_path, "http://127.0.0.1:9", "seven", "- The cat sleeps\n")
    with Index(store, embeds=Counting()) as index:
        assert index.refresh().semantic == READY and found(index, "who sleeps")[0] == ["The cat sleeps"]


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("http://localhost", Address("localhost", 8000, False)),
        (
            "https://tok%2Fen@db.example.org/acme/prod",
            Address("db.example.org", 443, True, "tok/en", "acme", "prod"),
        ),
        ("http://user:secret@10.0.0.7:9000/acme", Address("10.0.0.7", 9000, False, "secret", "acme")),
    ],
)
def test_addresses(url: str, means: Address) -> None:
    read = Address.parse(url)
    assert read == means and "secret" not in str(read) and "tok" not in str(read)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", "http://x:port"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(Usage, match="UA_MEMORY_CHROMA_URL"):
        Address.parse(url)


def test_chroma_still_closes_no_connection_by_itself(keeper: Doorkeeper) -> None:
    """Once it does, `vectors._hang_up` can go."""
    client = Line(keeper.url).client()
    client.close()
    try:
        assert not client._server._session.is_closed
    finally:
        client._server._session.close()
        client._admin_client._server._session.close()


def test_a_request_with_many_rows_may_take_longer(tmp_path: Path, keeper: Doorkeeper) -> None:
    rows = Shared(Line(keeper.url), "many", "machine", "none", tmp_path / "mark.json")
    with closing(rows):
        session, waits = rows.connection.client()._server._session, list[float]()
        session.event_hooks["request"] = [lambda sent: waits.append(sent.extensions["timeout"]["read"])]
        rows.upsert({f"text {n}": np.ones(4, dtype=np.float32) for n in range(200)})
        assert rows.count() == 200
    assert (
        set(waits[:-1]) == {server.REQUEST_TIMEOUT + 200 / server.ROWS_PER_SECOND}
        and waits[-1] == server.REQUEST_TIMEOUT
    )
