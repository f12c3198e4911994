"""Exit with an error if no server can bind an address, before a build has spent time.

Usage: `python -m figgen.serving.address HOST:PORT`.
"""

from __future__ import annotations

import socket
import sys


def refusal(address: str) -> str:
    """Return the system's reason why a server can't bind `address`; empty if it can."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(kind) as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind((host, int(port)))
    except (OSError, OverflowError, ValueError) as error:
        return f"{address}: {error}; to use another address: make serve ADDR=127.0.0.1:8001"
    return ""


if __name__ == "__main__":
    sys.exit(refusal(sys.argv[1]) or None)
