"""`tidings notify`: sends or draws a sample notice."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Annotated

import typer

from tidings.app import App
from tidings.cli.drawing import draw
from tidings.cli.help import Command, Group
from tidings.cli.options import ConfigOption, JsonOption, settings_from, wiring_of
from tidings.cli.output import end, fail, say, show_json
from tidings.cli.process import run_app
from tidings.config import Settings, notifier_modules, pipeline_modules
from tidings.model.contracts import Receipt
from tidings.model.errors import SlowDown, TidingsError
from tidings.model.publication import Notice, NoticeField
from tidings.model.texts import merged, worded
from tidings.publish.texts import NO_TEXTS, texts_of
from tidings.wiring import ChannelSpec, Wiring, channel_specs

GENERAL = Notice(
    title="A sample notice from tidings",
    url="https://example.org/",
    text="If you can read this, the channel works. Real notices tell of what was found.",
    fields=(NoticeField("Sample", "yes"),),
)
"""Sent for a pipeline that brings no sample of its own."""

notify = typer.Typer(name="notify", cls=Group, help="Try the channels.", no_args_is_help=True)


@notify.command("test", cls=Command)
def send_sample(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A configured channel.")],
    pipeline: Annotated[str | None, typer.Option(help="Whose sample to send.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a sample to a channel. Prints what the service really answered."""
    settings, wiring = settings_from(config), wiring_of(config)
    named_channel(wiring.channels, channel)
    notice = sample_of(settings, pipeline or _routed_to(wiring, channel))

    async def use(app: App) -> Receipt:
        target = app.channels[channel]
        permit = await app.ledger.enter(
            target.rate, limit=target.limit, per_seconds=target.per_seconds, hold_seconds=target.hold_seconds
        )
        if permit.wait_ms:
            raise SlowDown(f"{channel} is at its rate; try again in {permit.wait_ms / 1000:.0f} s")
        waits = 0
        try:
            receipt = await target.notifier.send(notice, f"test-{secrets.token_hex(3)}")
            waits = receipt.not_before_ms
        finally:
            await app.ledger.leave(target.rate, permit.token, not_before_ms=waits)
        return receipt

    receipt = run_app(wiring, use)
    if as_json:
        show_json({"channel": channel, "message_id": receipt.message_id, "answer": receipt.answer})
        return
    say(f"{channel}: {receipt.answer}")


@notify.command("preview", cls=Command)
def preview(
    pipeline: Annotated[str | None, typer.Option(help="Whose sample to show.")] = None,
    channel: Annotated[str | None, typer.Option(help="As it would be sent to this channel.")] = None,
    notifier: Annotated[str, typer.Option(help="Without a channel: as this notifier would send it.")] = "discord",
    drawn: Annotated[bool, typer.Option("--draw", help="Draw it for the terminal instead.")] = False,
    config: ConfigOption = None,
) -> None:
    """Show what would be sent, as JSON. Nothing is sent, and no secret is needed."""
    settings, modules = settings_from(config), notifier_modules()
    if notifier not in modules:
        fail(f"there is no notifier {notifier!r}; known: {', '.join(modules)}")
    own = modules[notifier].Settings()
    if channel is not None:
        spec = named_channel(channel_specs(settings), channel)
        notifier, own = spec.kind, spec.settings
    routes = [each for each in settings.routes if each.channel == channel]
    if pipeline is None:
        pipeline = next((each.pipeline for each in routes), None)
    route = next((each for each in routes if each.pipeline == pipeline), None)
    texts = merged(texts_of(route.texts) if route is not None else NO_TEXTS, texts_of(own.texts))
    notice = worded(sample_of(settings, pipeline), texts)
    if drawn:
        say(draw(notice))
        return
    show_json(modules[notifier].preview(own, notice))


def named_channel(channels: Iterable[ChannelSpec], name: str) -> ChannelSpec:
    """Return a channel by its name, or end with the names there are."""
    by_name = {spec.name: spec for spec in channels}
    if name not in by_name:
        fail(f"there is no channel {name!r}; configured: {', '.join(by_name) or 'none'}")
    return by_name[name]


def sample_of(settings: Settings, name: str | None) -> Notice:
    """Return a pipeline's sample notice; without a name, the first one's that has one."""
    modules = pipeline_modules()
    if name is not None and name not in modules:
        fail(f"there is no pipeline {name!r}; known: {', '.join(modules)}")
    for each in [name] if name is not None else [*settings.pipelines, *modules]:
        try:
            declared = modules[each].build(settings.pipelines.get(each) or modules[each].Settings())
        except TidingsError as error:
            end(error)
        if declared.sample_notice is not None:
            return declared.sample_notice  # type: ignore[no-any-return]
    return GENERAL


def _routed_to(wiring: Wiring, channel: str) -> str | None:
    return next((route.pipeline for route in wiring.routes if route.channel == channel), None)
