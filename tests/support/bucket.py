"""A strict stand-in for S3: put, get, head, delete and list of one bucket, with conditional puts; no more than that.

Written from Amazon's documentation of PutObject, GetObject, HeadObject, DeleteObject, DeleteObjects and ListObjectsV2.
Whatever else is asked is an error of the test.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

PAGE = 7
"""Small, so that lists have pages."""
SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=AKTEST/\d{8}/[\w-]+/s3/aws4_request, SignedHeaders=.+, Signature=[0-9a-f]{64}"
)


class Bucket:
    """What the stand-in holds, and how it is to misbehave."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.types: dict[str, str] = {}
        self.puts: list[str] = []
        self.refusals: list[str] = []
        """Requests that S3 would not have understood."""
        self.is_down = False
        self.lock = threading.Lock()
        self.endpoint = ""

    def etag(self, key: str) -> str:
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"'


@contextmanager
def a_bucket() -> Iterator[Bucket]:
    """Start the stand-in; its one bucket is called `news`."""
    bucket = Bucket()

    class Handler(_Requests):
        held = bucket

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    bucket.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield bucket
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Bucket

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.held.lock:
            key = self._admitted()
            if key is None:
                return
            is_there, etag = key in self.held.objects, self.held.etag(key) if key in self.held.objects else ""
            if self.headers.get("if-none-match") == "*" and is_there:
                self._fail(412, "PreconditionFailed")
            elif (wanted := self.headers.get("if-match")) is not None and wanted != etag:
                self._fail(412 if is_there else 404, "PreconditionFailed" if is_there else "NoSuchKey")
            else:
                self.held.objects[key] = body
                self.held.types[key] = self.headers.get("content-type", "")
                self.held.puts.append(key)
                self._answer(200, b"", ETag=self.held.etag(key))

    def do_GET(self) -> None:
        with self.held.lock:
            if "list-type" in parse_qs(urlsplit(self.path).query):
                self._list()
                return
            key = self._admitted()
            if key is None:
                return
            if key not in self.held.objects:
                self._fail(404, "NoSuchKey")
            else:
                self._answer(200, self.held.objects[key], **self._facts(key))

    def do_HEAD(self) -> None:
        with self.held.lock:
            key = self._admitted()
            if key is None:
                return
            if key not in self.held.objects:
                self._answer(404, b"")
            else:
                self._answer(200, self.held.objects[key], **self._facts(key))

    def do_DELETE(self) -> None:
        with self.held.lock:
            key = self._admitted()
            if key is not None:
                self.held.objects.pop(key, None)
                self._answer(204, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.held.lock:
            if self._admitted(bare=True) is None:
                return
            if urlsplit(self.path).query not in ("delete", "delete="):
                self._refuse(f"POST {self.path}")
                return
            keys = [unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode())]
            for key in keys:
                self.held.objects.pop(key, None)
            deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            self._answer(200, f'<?xml version="1.0"?><DeleteResult>{deleted}</DeleteResult>'.encode())

    def _list(self) -> None:
        if self._admitted(bare=True) is None:
            return
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        odd = query.keys() - {"list-type", "prefix", "continuation-token", "start-after", "max-keys"}
        if query["list-type"] != "2" or odd:
            self._refuse(f"list {sorted(odd)}")
            return
        after = query.get("continuation-token", query.get("start-after", ""))
        keys = sorted(key for key in self.held.objects if key.startswith(query.get("prefix", "")) and key > after)
        page, rest = keys[:PAGE], keys[PAGE:]
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(self.held.etag(key))}</ETag><Size>{len(self.held.objects[key])}</Size></Contents>"
            for key in page
        )
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        text = (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>news</Name>'
            f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>{found}{more}</ListBucketResult>"
        )
        self._answer(200, text.encode())

    def _admitted(self, *, bare: bool = False) -> str | None:
        """Return the key that a request means, or answer it and return None."""
        if self.held.is_down:
            self._fail(503, "SlowDown")
            return None
        if SIGNED.fullmatch(self.headers.get("authorization", "")) is None:
            self._fail(403, "SignatureDoesNotMatch")
            return None
        path = unquote(urlsplit(self.path).path)
        bucket, _, key = path.removeprefix("/").partition("/")
        if bucket != "news" or (bare and key) or (not bare and not key):
            self._fail(404, "NoSuchBucket")
            return None
        return key

    def _facts(self, key: str) -> dict[str, str]:
        return {"ETag": self.held.etag(key), "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}

    def _refuse(self, what: str) -> None:
        self.held.refusals.append(what)
        self._fail(501, "NotImplemented")

    def _fail(self, status: int, code: str) -> None:
        self._answer(status, f'<?xml version="1.0"?><Error><Code>{code}</Code></Error>'.encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
