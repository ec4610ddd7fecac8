"""Cloudflare Workers KV as a target, through its REST API: `cloudflare-kv://ACCOUNT/NAMESPACE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from tidings.follow.mirrors.target import KEY_BYTES_MAX
from tidings.model.errors import Misconfigured, Permanent, Transient
from tidings.net.client import Web, raise_for_status

API = "https://api.cloudflare.com/client/v4"
PAIRS_MAX = 10_000
REQUEST_BYTES_MAX = 90 << 20
"""Cloudflare takes 100 MB; what JSON adds to a value is not counted here."""
VALUE_BYTES_MAX = 25 << 20
GET_KEYS_MAX = 100
LIST_KEYS_MAX = 1_000
CALL_SECONDS = 60


class KvFault(msgspec.Struct):
    """One entry of `errors`."""

    code: int = 0
    message: str = ""


class KvPageInfo(msgspec.Struct):
    """How a list goes on; the cursor is empty at its end."""

    cursor: str = ""


class KvAnswer(msgspec.Struct):
    """The envelope of every answer."""

    success: bool
    errors: list[KvFault] = []
    result: Any = None
    result_info: KvPageInfo | None = None


class CloudflareTarget:
    """One namespace. It has no compare-and-set, so nothing but its settings keeps a second writer away."""

    has_paths = False
    batch_max = PAIRS_MAX

    def __init__(self, url: str, web: Web, *, token: str | None, endpoint: str = "") -> None:
        parts = urlsplit(url)
        namespace = parts.path.strip("/")
        if not parts.netloc or not namespace or "/" in namespace:
            raise Misconfigured("the address of a namespace is cloudflare-kv://ACCOUNT/NAMESPACE, both as ids")
        if not token:
            raise Misconfigured("Cloudflare's API token is missing; it comes by environment or file, as `secret`")
        self._prefix = parse_qs(parts.query).get("prefix", [""])[0]
        self.key_bytes_max = KEY_BYTES_MAX - len(self._prefix.encode())
        if self.key_bytes_max < KEY_BYTES_MAX // 2:
            raise Misconfigured(f"the prefix is too long: Cloudflare takes keys of {KEY_BYTES_MAX} bytes with it")
        self._base = f"{endpoint or API}/accounts/{parts.netloc}/storage/kv/namespaces/{namespace}"
        self._web, self._token = web, token
        self.place = f"Cloudflare KV {namespace}"
        web.allow_endpoint(self._base)

    async def hold(self) -> bool:
        """There is no lock: the operator runs one process that writes."""
        return True

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values that exist, as seen from here: a value may be a minute old."""
        found: dict[str, bytes] = {}
        for start in range(0, len(keys), GET_KEYS_MAX):
            page = keys[start : start + GET_KEYS_MAX]
            body = {"keys": [self._prefix + key for key in page], "type": "text"}
            values = (await self._call("POST", "/bulk/get", body)).result["values"]
            found |= {key: text.encode() for key in page if (text := values.get(self._prefix + key)) is not None}
        return found

    async def put_many(self, values: Mapping[str, bytes]) -> set[str]:
        """Write values in as few calls as its limits allow; return the keys it did not take."""
        failed: set[str] = set()
        for part in _parts(values):
            pairs = [{"key": self._prefix + key, "value": value.decode()} for key, value in part.items()]
            answer = await self._call("PUT", "/bulk", pairs)
            # The call succeeds even if single keys did not: Cloudflare names those in its answer.
            refused = (answer.result or {}).get("unsuccessful_keys") or []
            failed |= {key.removeprefix(self._prefix) for key in refused}
        return failed

    async def delete_many(self, keys: Sequence[str]) -> None:
        """Remove keys."""
        for start in range(0, len(keys), PAIRS_MAX):
            page = [self._prefix + key for key in keys[start : start + PAIRS_MAX]]
            await self._call("POST", "/bulk/delete", page)

    async def keys(self, prefix: str) -> set[str]:
        """Return every key that begins so."""
        found: set[str] = set()
        query = {"prefix": self._prefix + prefix, "limit": str(LIST_KEYS_MAX)}
        while True:
            answer = await self._call("GET", "/keys", params=query)
            found |= {each["name"].removeprefix(self._prefix) for each in answer.result}
            cursor = answer.result_info.cursor if answer.result_info is not None else ""
            if not cursor:
                return found
            query["cursor"] = cursor

    async def tag(self, key: str) -> str | None:  # noqa: ARG002  # the protocol's form
        """Return None: values have no tags that could be asked for."""
        return None

    async def replace(self, key: str, value: bytes, tag: str | None) -> str | None:  # noqa: ARG002  # the protocol's form
        """Write one value; the last writer wins."""
        if await self.put_many({key: value}):
            raise Transient(f"{self.place} did not take {key}")
        return None

    async def close(self) -> None:
        """The web client is closed by its owner."""

    async def _call(
        self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None
    ) -> KvAnswer:
        response = await self._web.call(
            method,
            f"{self._base}{path}",
            headers={"authorization": f"Bearer {self._token}"},
            json=body,
            params=params,
            timeout_seconds=CALL_SECONDS,
        )
        raise_for_status(response, self.place)
        try:
            answer = msgspec.json.decode(response.body, type=KvAnswer)
        except (msgspec.DecodeError, msgspec.ValidationError):
            raise Transient(f"{self.place} gave an answer that cannot be read") from None
        if not answer.success:
            told = "; ".join(f"{each.code} {each.message}" for each in answer.errors)[:200]
            raise Transient(f"{self.place} refused {method} {path}: {told}")
        return answer


def _parts(values: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Divide what is to be written into calls."""
    part: dict[str, bytes] = {}
    size = 0
    for key, value in values.items():
        if len(value) > VALUE_BYTES_MAX:
            raise Permanent(f"{key} has {len(value):,} bytes; Cloudflare takes {VALUE_BYTES_MAX:,}")
        if part and (len(part) == PAIRS_MAX or size + len(value) > REQUEST_BYTES_MAX):
            yield part
            part, size = {}, 0
        part[key] = value
        size += len(value)
    if part:
        yield part
