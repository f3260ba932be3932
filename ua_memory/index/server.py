"""Chroma on a server: vectors of many banks and machines in one place, where no machine touches another's.

A collection holds one bank's rows of one machine: two machines may have the same bank at different
revisions, and each finds what its own files say. (Telling them apart by a filter took 370 ms a query at
30,000 rows.) While the server is away `kept` answers, and the next look catches up.
"""

from __future__ import annotations

import json
import platform
import re
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ua_memory.errors import Usage
from ua_memory.index import chroma
from ua_memory.index.chroma import VectorsUnavailable
from ua_memory.index.mark import Mark, write_mark
from ua_memory.index.vectors import HNSW, Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float32]

PATIENCE = 10.0
"""Seconds for one request, of which a search waits for one at most; a look whether it is there has 2."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
SERVER_BATCH, CLOUD_BATCH = 2000, 300
"""Rows of one request; Chroma Cloud takes no more than 300."""
CLOUD = "trychroma.com"


class ServerAway(VectorsUnavailable):
    """The server cannot be reached, or does not answer as it should."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server as `http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]` says it. Shown without its token."""

    host: str
    port: int
    ssl: bool
    token: str = ""
    tenant: str = "default_tenant"
    database: str = "default_database"

    @classmethod
    def read(cls, url: str) -> Address:
        """Usage for what is no such URL."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port or (443 if parts.scheme == "https" else 8000)
        except ValueError as error:
            raise _not_a_server() from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _not_a_server()
        names = [unquote(name) for name in parts.path.split("/") if name]
        token = unquote(parts.password or parts.username or "")
        whole = (parts.hostname, port, parts.scheme == "https", token)
        return cls(*whole, *names[:2])

    @property
    def cloud(self) -> bool:
        return self.host.endswith(CLOUD)

    @property
    def headers(self) -> dict[str, str]:
        """Both headers that Chroma and the proxies before it know a token by."""
        return {"Authorization": f"Bearer {self.token}", "X-Chroma-Token": self.token} if self.token else {}

    def __str__(self) -> str:
        return f"{'https' if self.ssl else 'http'}://{self.host}:{self.port}"


def _not_a_server() -> Usage:
    return Usage(
        "UA_MEMORY_CHROMA_URL is no address of a Chroma server",
        mend="http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]",
    )


def machine(state: Path) -> str:
    """What tells this bank's state folder on this machine from all others; the same as long as it stays."""
    try:
        host = Path("/etc/machine-id").read_text().strip()
    except OSError:
        host = ""
    whole = f"{host or platform.node()}\n{state.resolve()}".encode("utf-8", "surrogateescape")
    return blake2b(whole, digest_size=8).hexdigest()


class Line:
    """The connection to one server, tried again after 1, 2, 4 … 60 seconds while it is away."""

    def __init__(self, url: str) -> None:
        self.address = Address.read(url)
        self._client: Any = None
        self._again, self._wait = 0.0, FIRST_WAIT

    def client(self) -> Any:
        """Chroma's client. ServerAway if there is none, at once where it was away a moment ago."""
        if self._client is None:
            if time.monotonic() < self._again:
                raise ServerAway(f"the Chroma server {self.address} is away")
            self._client = self._connected()
            self._wait = FIRST_WAIT
        return self._client

    def lost(self, error: BaseException) -> ServerAway:
        """Let go of the connection, and say what happened."""
        self.close()
        self._again, self._wait = time.monotonic() + self._wait, min(2 * self._wait, LONGEST_WAIT)
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return ServerAway(f"the Chroma server {self.address} is away: {why.replace(self._secret, '…')[:200]}")

    def close(self) -> None:
        """Hang up. The next who asks connects again."""
        client, self._client = self._client, None
        if client is not None:
            for part in (client, client._admin_client):  # 1.5.9 closes neither connection by itself
                part._server._session.close()
            client.close()

    @property
    def _secret(self) -> str:
        return self.address.token or "\0"

    def _connected(self) -> Any:
        there = self.address
        try:
            # Chroma's client waits for ever for a server that takes the call and says nothing.
            ask = urllib.request.Request(f"{there}/api/v2/heartbeat", headers=there.headers)
            with urllib.request.urlopen(ask, timeout=2) as answer:
                answer.read()
            chromadb, silent = chroma.imported()
            client = chromadb.HttpClient(
                there.host, there.port, there.ssl, there.headers, silent, there.tenant, there.database
            )
            client._server._session.timeout = PATIENCE
        except ImportError as error:
            raise VectorsUnavailable(f"{error.name or error} cannot be imported") from error
        except urllib.error.HTTPError as error:
            error.close()
            raise self.lost(error) from error
        except Exception as error:  # Chroma raises ValueError, its own errors, httpx's and urllib's
            raise self.lost(error) from error
        return client


class Shared(Rows):
    """This machine's rows of one bank on a server: what `Vectors` is for a folder."""

    def __init__(self, line: Line, bank: str, machine: str, embedding: str, mark_file: Path) -> None:
        self.line = line
        self.key = {"bank": bank, "machine": machine, "embedding": embedding}
        named = "-".join(("ua-memory", *filter(None, self.key.values())))
        self.name = re.sub(r"[^A-Za-z0-9_-]", "-", named)[:500].rstrip("-_")
        self.batch = CLOUD_BATCH if line.address.cloud else SERVER_BATCH
        self._mark_file = mark_file
        self._collection: Any = None
        self._there()

    def _there(self) -> Any:
        """The collection, on a connection that was not lost since."""
        client = self.line.client()
        if self._collection is None:
            try:
                self._collection = client.get_or_create_collection(
                    self.name,
                    embedding_function=None,
                    metadata=self.key,
                    configuration={"hnsw": dict(HNSW)},
                )
            except Exception as error:  # Chroma's own errors, httpx's and ValueError
                raise self.line.lost(error) from error
        return self._collection

    def close(self) -> None:
        self._collection = None
        self.line.close()

    def wipe(self) -> None:
        self._rows = None
        client = self.line.client()
        try:
            client.delete_collection(self.name)
        except Exception as error:  # as above
            raise self.line.lost(error) from error
        finally:
            self._collection = None

    @property
    def mark(self) -> Mark:
        there = str(self._there().id)
        try:
            known = json.loads(self._mark_file.read_text())
            return Mark(**known["mark"]) if known["collection"] == there else Mark()
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return Mark()

    def set_mark(self, mark: Mark) -> None:
        write_mark(self._mark_file, {"collection": str(self._there().id), "mark": asdict(mark)})

    def names(self) -> set[str]:
        found: set[str] = set()
        while True:
            page = self._call("get", limit=self.batch, offset=len(found), include=[])["ids"]
            found.update(page)
            if len(page) < self.batch:
                return found

    def query(self, vectors: Sequence[Row], limit: int) -> list[list[tuple[str, float]]]:
        return super().query(vectors, min(limit, self.batch))

    def _call(self, name: str, **values: Any) -> Any:
        there = self._there()
        try:
            return getattr(there, name)(**values)
        except Exception as error:  # as above
            self._collection = None
            raise self.line.lost(error) from error
