"""Asking a daemon how it stands, or to leave. Commands go the faster way of `cli.fast`."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ua_memory.daemon import address, messages

SECONDS = 5.0


def status(root: Path, env: Mapping[str, str]) -> dict[str, Any] | None:
    """What the bank's daemon says of itself; None if none answers."""
    return _asked(root, env, "status")


def stop(root: Path, env: Mapping[str, str]) -> int | None:
    """Ask it to leave; its process id, or None if none answers."""
    found = _asked(root, env, "stop")
    return int(found["pid"]) if found else None


def _asked(root: Path, env: Mapping[str, str], method: str) -> dict[str, Any] | None:
    name = address.name(os.path.realpath(root))
    for folder in address.folders(env):
        if not address.private(folder):
            continue
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
                daemon.settimeout(SECONDS)
                daemon.connect(f"{folder}/{name}")
                daemon.sendall(messages.line({"jsonrpc": "2.0", "id": 1, "method": method}))
                with daemon.makefile("rb") as lines:
                    return dict(json.loads(lines.readline())["result"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None
