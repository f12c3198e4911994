"""Ends where no server can begin at an address, before one has built for a while to find out.

`python -m figgen.serving.address HOST:PORT`.
"""

from __future__ import annotations

import socket
import sys


def refusal(address: str) -> str:
    """What the system says against a server there; empty where it would begin."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(kind) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((host, int(port)))
    except (OSError, OverflowError, ValueError) as error:
        return f"{address}: {error}; another is chosen by make serve ADDR=127.0.0.1:8001"
    return ""


if __name__ == "__main__":
    sys.exit(refusal(sys.argv[1]) or None)
