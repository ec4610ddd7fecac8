"""E-mail against a real SMTP server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import email
import email.policy
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from pydantic import SecretStr
from tests.support.hostile_text import HOSTILE

from tidings.model.errors import Ambiguous, Misconfigured, Permanent, SlowDown, TidingsError, Transient
from tidings.model.publication import Notice, NoticeField
from tidings.publish.notifiers.email import Email, Settings, endpoints, preview

PASSWORD = "canary-password-7f3a9c"
NOTICE = Notice(
    title="Ein Aufruf — «open»\r\nBcc: everyone@example.org",
    url="https://example.org/a?b=1&c=2",
    text="Research & innovation <script>alert(1)</script>\nsecond line",
    fields=(NoticeField("Deadline", "15 September 2026"),),
)


class Mailbox:
    """Keeps what arrives; answers a command as told, and may cut the connection after the message."""

    def __init__(self, answers: dict[str, str] | None = None, *, cuts: bool = False) -> None:
        self.answers = answers or {}
        self.cuts = cuts
        self.mails: list[Any] = []

    async def handle_RCPT(self, server: SMTP, session: Any, envelope: Any, address: str, options: Any) -> str:
        envelope.rcpt_tos.append(address)
        return self.answers.get("RCPT", "250 OK")

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Any) -> str:
        self.mails.append(envelope)
        if self.cuts:
            transport: Any = server.transport
            transport.abort()
        return self.answers.get("DATA", "250 queued as 42")


@contextlib.asynccontextmanager
async def a_server(mailbox: Mailbox, **options: Any) -> AsyncIterator[int]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, hostname="localhost", loop=loop, **options), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def a_channel(port: int, context: ssl.SSLContext | None = None, **changes: Any) -> Email:
    values = {"host": "127.0.0.1", "tls": "none", "sender": "tidings@example.org", "to": "reader@example.org"}
    settings = Settings(**{**values, "port": port, **changes})
    endpoints(settings, "mine", frozenset())
    return Email(settings, "mine", context)


async def failure(channel: Email) -> TidingsError:
    with pytest.raises(TidingsError) as caught:
        await channel.send(NOTICE, "0badcafe")
    assert "canary" not in f"{caught.value!r} {channel!r}"
    return caught.value


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 {subject} -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return cert, key


async def test_a_mail_has_both_parts_and_an_id_that_stays() -> None:
    mailbox = Mailbox()
    async with a_server(mailbox) as port:
        first = await a_channel(port).send(NOTICE, "0badcafe")
        second = await a_channel(port).send(NOTICE, "0badcafe")

    assert first.message_id == second.message_id
    assert first.answer == "250 queued as 42"
    envelope = mailbox.mails[0]
    assert envelope.rcpt_tos == ["reader@example.org"]
    mail: Any = email.message_from_bytes(envelope.content, policy=email.policy.default)
    assert mail["Bcc"] is None
    assert mail["Subject"] == "Ein Aufruf — «open» Bcc: everyone@example.org"
    text, page = mail.get_body(("plain",)).get_content(), mail.get_body(("html",)).get_content()
    assert "second line" in text
    assert "Deadline: 15 September 2026" in text
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert 'href="https://example.org/a?b=1&amp;c=2"' in page


async def test_hostile_text_makes_no_header_and_no_markup() -> None:
    mailbox = Mailbox()
    texts = [*HOSTILE.values(), "a\r\n\r\n.\r\nMAIL FROM:<x@y>", "\ud83d\u202e\x00é" * 200]
    async with a_server(mailbox) as port:
        for text in texts:
            await a_channel(port).send(Notice(title=text, text=text, url=text, fields=(NoticeField(text, text),)), "1")

    assert len(mailbox.mails) == len(texts)
    for envelope in mailbox.mails:
        mail: Any = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert mail["To"] == "reader@example.org"
        assert "<script" not in mail.get_body(("html",)).get_content()


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"RCPT": "451 4.7.1 greylisted, try again"}, SlowDown), ({"DATA": "452 4.3.1 no room"}, SlowDown),
        ({"RCPT": "550 5.1.1 no such user"}, Permanent), ({"DATA": "554 5.7.1 spam"}, Permanent),
    ],
)  # fmt: skip
async def test_an_answer_says_what_happens(answers: dict[str, str], error: type[Exception]) -> None:
    async with a_server(Mailbox(answers)) as port:
        assert type(await failure(a_channel(port))) is error


async def test_a_connection_cut_after_the_message_leaves_its_outcome_unknown() -> None:
    mailbox = Mailbox(cuts=True)
    async with a_server(mailbox) as port:
        assert type(await failure(a_channel(port))) is Ambiguous
    assert len(mailbox.mails) == 1


async def test_an_absent_server_is_tried_again() -> None:
    assert type(await failure(a_channel(9))) is Transient


async def test_starttls_and_login(certificate: tuple[Path, Path]) -> None:
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    def authenticate(server: Any, session: Any, envelope: Any, mechanism: Any, data: Any) -> AuthResult:
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)

    mailbox = Mailbox()
    options = {
        "tls_context": server_context,
        "require_starttls": True,
        "authenticator": authenticate,
        "auth_required": True,
    }
    async with a_server(mailbox, **options) as port:
        login = {"tls": "starttls", "username": "me", "password": SecretStr(PASSWORD)}
        channel = a_channel(port, trusting, **login)
        assert "takes the login" in await channel.check()
        assert mailbox.mails == []
        await channel.send(NOTICE, "1")
        wrong = a_channel(port, trusting, **{**login, "password": SecretStr("canary-wrong")})
        assert type(await failure(wrong)) is Misconfigured
        # The machine does not trust this certificate.
        assert type(await failure(a_channel(port, None, **login))) is Misconfigured

    assert len(mailbox.mails) == 1


async def test_a_server_without_starttls_gets_no_password() -> None:
    async with a_server(Mailbox()) as port:
        error = await failure(a_channel(port, tls="starttls", username="me", password=SecretStr(PASSWORD)))
    assert type(error) is Misconfigured


@pytest.mark.parametrize(
    "changes",
    [
        {"host": ""}, {"to": "a@b\r\nRCPT TO:<x@y>"}, {"sender": "Me <a@b.org>"}, {"host": "mail.example.org"},
        {"username": "me"}, {"password": SecretStr(PASSWORD)},
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_at_the_start(changes: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured) as caught:
        a_channel(25, **changes)
    assert "canary" not in str(caught.value)


def test_a_preview_needs_no_settings() -> None:
    assert preview(Settings(), NOTICE)["subject"].startswith("Ein Aufruf")
