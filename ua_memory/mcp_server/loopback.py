"""Streamable HTTP for this machine alone: the SDK's server behind a token and a check of hosts and origins.

Any program and any web page on the machine can reach a port of loopback. The token keeps programs of other
users out; the check keeps out a page whose name was made to point here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Busy, CannotWrite, Malformed
from ua_memory.paths import make_private

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

HOST = "127.0.0.1"
NAME = "mcp-token"


def token(folder: Path) -> tuple[str, bool]:
    """The token that is kept in a folder, readable by its owner alone, and whether it was made just now.

    Malformed where others can read it, or where it is none; CannotWrite.
    """
    file = folder / NAME
    mend = f"rm {file}, and give clients the new one"
    try:
        make_private(folder)
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if file.stat().st_mode & 0o077:
            raise Malformed("others can read the token", where=str(file), mend=mend) from None
        kept = file.read_text("ascii", "replace").strip()
        if len(kept) < 32:
            raise Malformed("this is no token", where=str(file), mend=mend) from None
        return kept, False
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file)) from error
    made = secrets.token_urlsafe(32)
    with os.fdopen(fd, "w") as out:
        out.write(made + "\n")
    return made, True


def bound(port: int) -> socket.socket:
    """A socket of loopback on a port, any free one for 0; who calls before it is served waits. Busy."""
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise Busy(
            f"port {port}: {error.strerror}", mend="name another: ua-memory mcp --http --port N"
        ) from error
    return made


class Guarded:
    """An ASGI application that lets a request pass only with the token."""

    def __init__(self, inner: Any, expected: str) -> None:
        self.inner, self._expected = inner, f"Bearer {expected}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._known(scope["headers"]):
            headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"the token is missing or another\n"})
            return
        await self.inner(scope, receive, send)

    def _known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


def application(made: Server[Any], expected: str, port: int) -> Guarded:
    """The server as an ASGI application at `/mcp`, for callers who name this machine and this port."""
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"{name}:{port}" for name in (HOST, "localhost", "[::1]")]
    allowed = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )  # fmt: skip
    return Guarded(made.streamable_http_app(host=HOST, transport_security=allowed), expected)


def serve(made: Server[Any], expected: str, at: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM."""
    import uvicorn

    app = application(made, expected, at.getsockname()[1])
    # h11: httptools, which chromadb brings along, leaves the space around a value that RFC 9110 takes away.
    settings = uvicorn.Config(app, http="h11", ws="none", log_level="warning", access_log=False)
    uvicorn.Server(settings).run(sockets=[at])
