"""Addresses that must never be connected to, in every disguise we know of."""

from __future__ import annotations

import ipaddress

FORBIDDEN_V4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "100.100.100.200/32",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "169.254.169.254/32",
    "169.254.170.2/32",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.192/32",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
]
FORBIDDEN_V6 = [
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fd00:ec2::254/128",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "168.63.129.17", "2606:4700::1111", "2a00:1450::1"]


def literals() -> list[str]:
    """Return every special range by its ends and middle, and private addresses wrapped in others."""
    found = [str(net[place]) for net in map(ipaddress.IPv4Network, FORBIDDEN_V4) for place in (0, -1)]
    for net in map(ipaddress.IPv6Network, FORBIDDEN_V6):
        found += [f"[{net[0]}]", f"[{net[-1]}]"]
    for inner in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1", "0.0.0.0"):
        number = int(ipaddress.IPv4Address(inner))
        high, low = number >> 16, number & 0xFFFF
        found += [
            f"[::ffff:{inner}]",
            f"[::{inner}]" if number > 0xFFFF else "[::]",
            f"[::ffff:{high:x}:{low:x}]",
            f"[64:ff9b::{inner}]",
            f"[64:ff9b:1::{high:x}:{low:x}]",
            f"[2002:{high:x}:{low:x}::]",
            f"[2001:0:{high:x}:{low:x}::1]",
            f"[2001:0:4136:e378:8000:63bf:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}]",
            f"[::ffff:0:{inner}]",
        ]
    return sorted(set(found))


def spellings_of(address: str) -> list[str]:
    """Return the ways C libraries and careless parsers read one IPv4 address."""
    a, b, c, d = (int(part) for part in address.split("."))
    number = int(ipaddress.IPv4Address(address))
    circled = str.maketrans("0123456789", "⓪①②③④⑤⑥⑦⑧⑨")
    fullwidth = str.maketrans("0123456789", "０１２３４５６７８９")
    return [
        f"{number}",
        f"{number:#x}",
        f"0{number:o}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d}",
        f"{a:#x}.{(b << 16) + (c << 8) + d}",
        f"{address}.",
        f"{address}..",
        address.translate(circled),
        address.translate(fullwidth),
        address.replace(".", "。"),
        f"{a:03d}.{b:03d}.{c:03d}.{d:03d}",
        f"%{ord(address[0]):x}{address[1:]}",
        f"[{address}]",
    ]


def hosts() -> list[str]:
    """Return hosts that no page may make us visit."""
    found = literals()
    for address in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "192.168.0.1", "0.0.0.0", "168.63.129.16"):
        found += spellings_of(address)
    found += ["0", "0x0", "127.1", "0x7f.1", "017700000001", "1.1", "4294967295", "256.256.256.256", "1.2.3.4.5"]
    found += ["localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "intranet", "metadata"]
    found += ["metadata.google.internal", "instance-data.internal", "printer.local", "router.lan", "x.home.arpa"]
    found += [
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[::1%lo]",
        "[::1",
        "::1",
        "[]",
        "[v1.fe80]",
        "[1.1.1.1]",
        "[example.com]",
        "a..b",
        ".",
        "-a.com",
    ]
    found += ["a b.com", "a\tb.com", "a\nb.com", "a\x00b.com", "a\\b.com", "a%2eb.com", "exa\u00admple\u200b.invalid x"]
    return found


def addresses() -> list[str]:
    """Return whole addresses that must be refused by their spelling alone."""
    found = [f"http://{host}/" for host in hosts()]
    found += [f"https://{host}/x" for host in literals()[::3]]
    found += [
        f"http://example.com:{port}/" for port in (1, 21, 22, 25, 53, 81, 444, 3306, 5432, 6379, 8000, 8080, 9200)
    ]
    found += [f"http://127.0.0.1:{port}/" for port in (80, 443, 8000, 8080)]
    found += ["http://example.com:0/", "http://example.com:65536/", "http://example.com:-80/", "http://example.com:8o/"]
    found += [
        "http://example.com\\@169.254.169.254/",
        "http://169.254.169.254\\@example.com/",
        "http://example.com@169.254.169.254/",
        "http://example.com:80@169.254.169.254/",
        "http://user:pass@example.com/",
        "http://@example.com/",
        "http://169.254.169.254#@example.com/",
        "http://169.254.169.254?@example.com/",
        "http://example.com /",
        "http:///169.254.169.254/",
        "http:/169.254.169.254/",
        "http:169.254.169.254",
        "http:\\\\169.254.169.254\\",
        "//169.254.169.254/",
        "169.254.169.254",
        "",
        " ",
        "http://",
        "http://?",
        "http://:80/",
        "\x01http://example.com/",
        "http://example.com/\r\nHost: evil",
        "http://example.com/\x7f",
        "http://exam\u2028ple.com/",
        "http://\ud800.com/",
        "http://" + "a" * 64 + ".com/",
        "http://" + "a." * 130 + "com/",
        "http://example.com/" + "a" * 9000,
    ]
    schemes = [
        "file",
        "ftp",
        "gopher",
        "dict",
        "ldap",
        "tftp",
        "jar",
        "netdoc",
        "data",
        "javascript",
        "ws",
        "wss",
        "ssh",
    ]
    found += [f"{scheme}://127.0.0.1/etc/passwd" for scheme in schemes]
    return found
