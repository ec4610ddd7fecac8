"""A TCP proxy between a client and its server that freezes, resets, delays and comes back, as networks do."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK_BYTES = 65_536
Address = tuple[str, int] | str
"""A host and port, or the path of a Unix socket."""


class Proxy:
    """Passes bytes on while its gate is open. Frozen, it still accepts and reads: for TCP the host lives."""

    def __init__(self, target: Address, port: int = 0) -> None:
        self._target = target
        self._gate = threading.Event()
        self._gate.set()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self.delay_seconds = 0.0
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)

    def freeze(self) -> None:
        """Hold every byte, in both directions."""
        self._gate.clear()

    def thaw(self) -> None:
        """Pass on what was held, and whatever comes."""
        self._gate.set()

    def reset(self) -> None:
        """Cut every connection with a reset."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _reset(end)

    def close(self) -> None:
        """Stop listening and cut everything."""
        self._listener.close()
        self._gate.set()
        self.reset()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = _connected(self._target)
            except OSError:
                if self._listener.fileno() < 0:
                    return
                with contextlib.suppress(OSError, UnboundLocalError):
                    _reset(client)
                continue
            pair = (client, server)
            with self._lock:
                self._pairs.add(pair)
            self._spawn(self._pump, client, server)
            self._spawn(self._pump, server, client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK_BYTES):
                if self.delay_seconds:
                    time.sleep(self.delay_seconds)
                self._gate.wait()
                sink.sendall(data)
        self._gate.wait()
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _spawn(run: object, *values: socket.socket) -> None:
        assert callable(run)
        threading.Thread(target=run, args=values, daemon=True).start()


@contextmanager
def proxied(url: str) -> Iterator[tuple[Proxy, str]]:
    """Put a proxy before the PostgreSQL a URL names; give the proxy and the URL that leads through it."""
    import psycopg

    parts = psycopg.conninfo.conninfo_to_dict(url)
    host, port = str(parts.get("host") or "localhost"), int(parts.get("port") or 5432)
    proxy = Proxy(f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port))
    try:
        yield proxy, f"postgresql://{parts['user']}@127.0.0.1:{proxy.port}/{parts['dbname']}?sslmode=disable"
    finally:
        proxy.close()


def _connected(target: Address) -> socket.socket:
    if isinstance(target, str):
        end = socket.socket(socket.AF_UNIX)
        end.connect(target)
        return end
    return socket.create_connection(target)


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        if end.family == socket.AF_INET:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        end.close()
