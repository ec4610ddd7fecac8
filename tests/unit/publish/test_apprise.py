"""The optional notifier for everything Apprise knows."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from tidings.model.errors import Ambiguous, Misconfigured
from tidings.model.publication import Notice, NoticeField
from tidings.publish.notifiers.apprise import Apprise

NOTICE = Notice(
    title="Quiet harbours",
    text="Noise of small vessels.",
    url="https://example.org/",
    fields=(NoticeField("Status", "Open"),),
)


def test_apprise_is_silent_and_keeps_its_address_to_itself(caplog):
    caplog.set_level(logging.DEBUG)
    secret = "canary-apprise-secret"
    notifier = Apprise(f"json://user:{secret}@127.0.0.1:9/path", "phone")
    logging.getLogger("apprise").error("apprise:// %s", secret)
    logging.getLogger("urllib3.connectionpool").debug("POST /%s", secret)

    assert secret not in caplog.text + repr(notifier)
    with pytest.raises(Misconfigured) as raised:
        Apprise(f"nonsense://{secret}", "phone")
    assert secret not in str(raised.value)


async def test_apprise_that_does_not_confirm_is_ambiguous():
    notifier = Apprise("json://127.0.0.1:9/", "phone")

    with pytest.raises(Ambiguous):
        await notifier.send(NOTICE, "1")


def test_apprise_gets_plain_text():
    shown = Apprise("json://127.0.0.1:9/", "phone").render(NOTICE, "abc")

    assert shown["title"] == "Quiet harbours"
    assert shown["body"] == "Noise of small vessels.\n\nStatus: Open\n\nhttps://example.org/\n\ntidings • abc"


def test_importing_the_room_does_not_import_apprise():
    code = "import sys, tidings.publish.sending, tidings.publish.notifiers.apprise; sys.exit('apprise' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
