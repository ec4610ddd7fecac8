"""Our own script, style and icon: read once, served under a name that holds their hash, cached for ever."""

from __future__ import annotations

from hashlib import blake2b
from importlib.resources import files

from tidings.serve.http.operations import Call, Operation
from tidings.serve.http.problems import Problem
from tidings.serve.http.replies import Encoded, Reply

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOREVER = "public, max-age=31536000, immutable"
FILES = ("tidings.css", "tidings.js", "read.js", "favicon.svg")


class StaticFiles:
    """The files, by name."""

    def __init__(self) -> None:
        folder = files("tidings.serve.pages") / "static"
        contents = {name: (folder / name).read_bytes() for name in FILES}
        mark = blake2b(b"".join(contents.values()), digest_size=6).hexdigest()
        self.paths = {name: f"/static/{mark}/{name}" for name in FILES}
        self._encoded = {name: _encoded(name, body) for name, body in contents.items()}

    def operations(self) -> list[Operation]:
        """Declare the route."""
        return [
            Operation("GET", "/static/{mark}/{name}", "public", self._file, "A file", is_page=True, any_query=True),
            Operation("GET", "/favicon.ico", "public", self._icon, "The icon", is_page=True, any_query=True),
        ]

    async def _file(self, call: Call) -> Reply:
        encoded = self._encoded.get(call["name"])
        if encoded is None:
            raise Problem(404, "No such file.")
        return Reply(encoded=encoded)

    async def _icon(self, _call: Call) -> Reply:
        return Reply(encoded=self._encoded["favicon.svg"])


def _encoded(name: str, body: bytes) -> Encoded:
    return Encoded(body, _TYPES[name[name.rindex(".") :]], cache=_FOREVER)
