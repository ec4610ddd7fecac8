"""Addresses of targets: which kind each is, and what opens it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tidings.follow.mirrors.bucket_target import BucketTarget
from tidings.follow.mirrors.cloudflare_target import CloudflareTarget
from tidings.follow.mirrors.folder_target import FolderTarget
from tidings.follow.mirrors.redis_target import RedisTarget
from tidings.follow.mirrors.target import Target
from tidings.model.errors import Misconfigured
from tidings.net.client import Web

SCHEMES = ("redis", "rediss", "file", "s3", "cloudflare-kv")


@dataclass(frozen=True, slots=True)
class TargetAddress:
    """Where a mirror is, and how to get in."""

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    access_key: str = ""
    region: str = ""
    endpoint: str = ""

    @property
    def scheme(self) -> str:
        """What kind of target it is; empty where the address cannot be read."""
        try:
            return urlsplit(self.url).scheme
        except ValueError:
            return ""


def open_target(address: TargetAddress, web: Web | None = None) -> Target:
    """Open a target; nothing is asked of it yet. Raise Misconfigured where the address cannot work."""
    if address.scheme in ("redis", "rediss"):
        return RedisTarget(address.url, password=address.secret)
    if address.scheme == "file":
        return FolderTarget(address.url)
    if address.scheme == "s3":
        return BucketTarget(
            address.url,
            access_key=address.access_key,
            secret=address.secret,
            region=address.region,
            endpoint=address.endpoint,
        )
    if address.scheme == "cloudflare-kv":
        if web is None:
            raise Misconfigured("a mirror at Cloudflare is read by a Worker there; --from takes redis:// and file:///")
        return CloudflareTarget(address.url, web, token=address.secret, endpoint=address.endpoint)
    raise Misconfigured(f"an address of a mirror begins with one of {', '.join(f'{each}://' for each in SCHEMES)}")
