"""Sends notices as e-mail by SMTP: plain text and HTML, one reader for each channel.

The message's id is made from the delivery's: a mail program that gets a repeat recognizes it.
"""

from __future__ import annotations

import html
import re
import ssl
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as WIRE
from email.utils import localtime
from hashlib import blake2b
from typing import Literal

import aiosmtplib
from pydantic import Field, SecretStr

from tidings.model.contracts import Fetcher, Receipt
from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.publication import Notice
from tidings.model.urls import link_address
from tidings.publish.notifiers import ChannelSettings
from tidings.publish.service import secret_value
from tidings.publish.wording import facts, fit, one_line

TIMEOUT_SECONDS = 30.0
GREYLIST_WAIT_SECONDS = 300.0
"""A server that does not know us yet often wants us to come back after some minutes."""
SUBJECT_MAX = 150
TEXT_MAX = 10_000
ANSWER_CHARS_MAX = 200
PRODUCT = "tidings"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_REFUSED_LOGIN = frozenset({530, 534, 535, 538})


class Settings(ChannelSettings):
    """One reader of e-mail, by an SMTP server."""

    host: str = ""
    """The server that takes our mail."""
    port: int = Field(default=587, ge=1, le=65535)
    """Usually 587 with starttls, 465 with tls."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is kept secret; none only for a server on this machine."""
    sender: str = ""
    """The address that mail comes from."""
    to: str = ""
    """The address of the one reader; for many, a mailing list or a channel for each."""
    username: str = ""
    """The name to log in with; empty: no login."""
    password: SecretStr = SecretStr("")
    """Only by environment or file: TIDINGS_NOTIFIERS__EMAIL__<NAME>__PASSWORD."""


def endpoints(settings: Settings, name: str, loopback: frozenset[tuple[str, int]]) -> tuple[str, ...]:  # noqa: ARG001  # mail needs no web client
    """Call no web address; refuse settings that cannot work, or would tell a password to the network."""
    who = f"email:{name}"
    if not re.fullmatch(r"[A-Za-z0-9.:-]+", settings.host):
        raise Misconfigured(f"{who}: host must name the SMTP server")
    for field in ("sender", "to"):
        if not _ADDRESS.fullmatch(getattr(settings, field)):
            raise Misconfigured(f"{who}: {field} must be a plain address such as me@example.org")
    if settings.tls == "none" and settings.host not in LOOPBACK:
        raise Misconfigured(f'{who}: tls = "none" is for a server on this machine; use starttls or tls')
    if bool(settings.username) != bool(secret_value(settings.password)):
        raise Misconfigured(f"{who}: username and password belong together; set both or neither")
    return ()


def build(settings: Settings, name: str, fetcher: Fetcher, loopback: frozenset[tuple[str, int]]) -> Email:  # noqa: ARG001
    """Return the notifier of one reader."""
    return Email(settings, name)


async def check(notifier: Email) -> str:
    """Connect, log in and say goodbye; nothing is sent."""
    return await notifier.check()


def preview(settings: Settings, notice: Notice) -> dict[str, str]:
    """Return subject and both parts."""
    return Email(settings, "preview").render(notice, "preview")


class Email:
    """The notifier of one reader."""

    def __init__(self, settings: Settings, name: str, tls_context: ssl.SSLContext | None = None) -> None:
        self.name = name
        self._settings = settings
        self._tls_context = tls_context
        self._who = f"email:{name}"

    def __repr__(self) -> str:
        return f"Email({self._who})"

    async def send(self, notice: Notice, delivery_id: str) -> Receipt:
        """Hand one message to the server; raise the error that says what to do where it does not take it."""
        message = self.message(notice, delivery_id)
        client = await self._connected()
        try:
            await self._envelope(client)
            answer = await self._content(client, message.as_bytes(policy=WIRE))
        finally:
            client.close()
        return Receipt(message["Message-ID"], f"{answer.code} {self._masked(answer.message)}".strip())

    def render(self, notice: Notice, delivery_id: str) -> dict[str, str]:
        """Return subject, plain text and HTML."""
        subject = one_line(notice.title, SUBJECT_MAX) or "Untitled"
        return {
            "subject": subject,
            "text": plain_part(notice, delivery_id),
            "html": html_part(notice, delivery_id),
        }

    def message(self, notice: Notice, delivery_id: str) -> EmailMessage:
        """Return the whole message. The library refuses a header with a line break, and none gets that far."""
        settings, parts = self._settings, self.render(notice, delivery_id)
        message = EmailMessage(policy=WIRE)
        message["Subject"] = parts["subject"]
        message["From"] = Address(PRODUCT, addr_spec=settings.sender)
        message["To"] = Address(addr_spec=settings.to)
        message["Date"] = localtime()
        message["Message-ID"] = message_id(settings, delivery_id)
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(parts["text"])
        message.add_alternative(parts["html"], subtype="html")
        return message

    async def check(self) -> str:
        """Say that the server lets us in."""
        client = await self._connected()
        client.close()
        how = f"takes the login of {self._settings.username!r}" if self._settings.username else "answers"
        return f"{self._settings.host} {how}; whether it takes mail for the reader, a test tells"

    async def _connected(self) -> aiosmtplib.SMTP:
        """Connect, make it secret, log in."""
        settings = self._settings
        client = aiosmtplib.SMTP(
            hostname=settings.host,
            port=settings.port,
            use_tls=settings.tls == "tls",
            start_tls=settings.tls == "starttls",
            timeout=TIMEOUT_SECONDS,
            tls_context=self._tls_context,
        )
        try:
            await client.connect()
            if settings.username:
                await client.login(settings.username, secret_value(settings.password))
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            client.close()
            raise self._before_data(error) from None
        return client

    async def _envelope(self, client: aiosmtplib.SMTP) -> None:
        try:
            await client.mail(self._settings.sender)
            await client.rcpt(self._settings.to)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise self._before_data(error) from None

    async def _content(self, client: aiosmtplib.SMTP, content: bytes) -> aiosmtplib.SMTPResponse:
        try:
            return await client.data(content)
        except aiosmtplib.SMTPResponseException as error:
            raise self._refusal(error) from None
        except (aiosmtplib.SMTPException, OSError):
            # The message may have been taken before the connection broke.
            raise Ambiguous(f"{self._who}: the connection broke after the message; it may or may not be sent") from None

    def _before_data(self, error: Exception) -> TidingsError:
        """Say what a failure means before any of the message was sent."""
        if isinstance(error, aiosmtplib.SMTPResponseException):
            return self._refusal(error)
        if isinstance(error, ssl.SSLCertVerificationError) or "certificate" in str(error).lower():
            return Misconfigured(f"{self._who}: the server's certificate cannot be trusted; check host and clock")
        if isinstance(error, aiosmtplib.SMTPNotSupported) or "starttls" in str(error).lower():
            return Misconfigured(f"{self._who}: the server lacks what is set (tls, login); check its settings")
        return Transient(f"{self._who}: {self._settings.host} was not reached ({type(error).__name__})")

    def _refusal(self, error: aiosmtplib.SMTPResponseException) -> TidingsError:
        told = f"{error.code} {self._masked(error.message)}".strip()
        if error.code in _REFUSED_LOGIN or (
            isinstance(error, aiosmtplib.SMTPAuthenticationError) and error.code >= 500
        ):
            return Misconfigured(f"{self._who}: the login is refused ({told}); set it right, then resume it")
        if 400 <= error.code < 500:
            wait = GREYLIST_WAIT_SECONDS
            return SlowDown(f"{self._who} wants us to come back later ({told})", retry_after_seconds=wait)
        return Permanent(f"{self._who} refused the message ({told})", status=error.code)

    def _masked(self, text: str) -> str:
        password = secret_value(self._settings.password)
        text = one_line(text, ANSWER_CHARS_MAX)
        return text.replace(password, "***") if password else text


def message_id(settings: Settings, delivery_id: str) -> str:
    """Return the id of a delivery's message to this reader: the same at every try."""
    name = blake2b(f"{settings.to}/{delivery_id}".encode(), digest_size=12).hexdigest()
    return f"<{name}@{settings.sender.rpartition('@')[2] or 'localhost'}>"


def plain_part(notice: Notice, delivery_id: str) -> str:
    """Return the notice for mail programs that show text."""
    lines = "\n".join(f"{name}: {value}" for name, value in facts(notice))
    parts = (
        one_line(notice.title, SUBJECT_MAX) or "Untitled",
        fit(notice.text, TEXT_MAX, markdown=False),
        lines,
        link_address(notice.url) or "",
        f"-- \n{one_line(notice.footer, 300) or PRODUCT} • {one_line(delivery_id, 80)}",
    )
    return "\n\n".join(part for part in parts if part)


def html_part(notice: Notice, delivery_id: str) -> str:
    """Return the notice as a small page: strangers' text is escaped, nothing is loaded from anywhere."""
    title = _escape(one_line(notice.title, SUBJECT_MAX) or "Untitled")
    address = link_address(notice.url)
    heading = f'<a href="{_escape(address)}" style="color:#0b57d0">{title}</a>' if address else title
    rows = "".join(
        f'<tr><th align="left" valign="top" style="padding:2px 16px 2px 0;font-weight:600">{_escape(name)}</th>'
        f'<td style="padding:2px 0">{_lines(value)}</td></tr>'
        for name, value in facts(notice)
    )
    text = fit(notice.text, TEXT_MAX, markdown=False)
    footer = _escape(one_line(notice.footer, 300)) or PRODUCT
    parts = [
        f'<h1 style="font-size:20px;line-height:1.3;margin:0 0 12px">{heading}</h1>',
        _listed(notice) if notice.entries else f'<p style="margin:0 0 16px">{_lines(text)}</p>' if text else "",
        f'<table role="presentation" cellspacing="0" style="font-size:14px;margin:0 0 20px">{rows}</table>'
        if rows
        else "",
        f'<p style="font-size:12px;color:#5f6368;margin:0">{footer} • {_escape(delivery_id)}</p>',
    ]
    page = "".join(part for part in parts if part)
    style = "max-width:640px;margin:0 auto;padding:24px;font:16px/1.5 system-ui,sans-serif;color:#202124"
    head = '<!doctype html><html><head><meta charset="utf-8"></head>'
    return f'{head}<body><div style="{style}">{page}</div></body></html>\n'


def _listed(notice: Notice) -> str:
    """Write a digest's entries as linked lists, one for each group."""
    groups: dict[str, list[str]] = {}
    for entry in notice.entries:
        title, address = _escape(one_line(entry.title, SUBJECT_MAX)), link_address(entry.url)
        linked = f'<a href="{_escape(address)}" style="color:#0b57d0">{title}</a>' if address else title
        more = f'<br><span style="font-size:14px;color:#5f6368">{_escape(entry.text)}</span>' if entry.text else ""
        groups.setdefault(entry.group, []).append(f'<li style="margin:0 0 8px">{linked}{more}</li>')
    parts = [
        f'<h2 style="font-size:16px;margin:16px 0 8px">{_escape(group)}</h2>'
        f'<ul style="margin:0 0 16px;padding-left:20px">{"".join(lines)}</ul>'
        for group, lines in groups.items()
    ]
    return "".join([*parts, f'<p style="margin:0 0 16px">{_escape(notice.closing)}</p>' if notice.closing else ""])


def _lines(text: str) -> str:
    return _escape(text).replace("\n", "<br>")


def _escape(text: str) -> str:
    return html.escape(text, quote=True)
