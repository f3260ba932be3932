"""Who is at the other end of a socket, as the kernel says."""

from __future__ import annotations

import socket
import struct
import sys

_LOCAL_PEERCRED = 0x001  # macOS, level 0: struct xucred


def uid(connection: socket.socket) -> int:
    """The user id of the peer. OSError where the kernel does not say."""
    if sys.platform == "darwin":
        version, user = struct.unpack_from("=II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))
        if version:
            raise OSError(f"xucred has version {version}")
        return int(user)
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
    return int(struct.unpack("=iII", found)[1])
