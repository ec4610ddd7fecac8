"""What a route may be told: which notices go where, and how calmly."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tidings.model.hours import parse_quiet, parse_times
from tidings.publish.texts import TextSettings


def _times(text: str) -> str:
    if text:
        parse_times(text)
    return text


def _quiet(text: str) -> str:
    if text:
        parse_quiet(text)
    return text


class RouteSettings(BaseModel):
    """Which notices go where."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    pipeline: str
    """The pipeline whose notices are meant."""
    channel: str
    """The channel they go to."""
    query: str = ""
    """Only those that match, such as `programme:HORIZON status:open`; empty means all."""
    queue_days: float = Field(default=7, gt=0, le=365)
    """How long a notice may wait to be sent, behind a paused channel for one; later it is no news and expires."""
    stories: int = Field(default=0, ge=0, le=100)
    """Instead of items, each story once, when so many sources tell it and an item of this pipeline does; 0: items."""
    digest: Annotated[str, AfterValidator(_times)] = ""
    """All in one message: hourly, `daily at 08:00 Europe/Brussels`, weekdays at ..., `weekly on Monday at ...`; empty
    means each notice for itself."""
    quiet: Annotated[str, AfterValidator(_quiet)] = ""
    """When nothing is sent, such as `22:00-07:00 Europe/Brussels`; what comes then waits for the end."""
    max_per_hour: int = Field(default=0, ge=0, le=1000)
    """The most messages in an hour; what is more waits for a digest at the next full hour. 0 means no limit."""
    texts: TextSettings = TextSettings()
    """The words of its notices, over those of the channel."""
