"""The words of notices, as a route or a channel may set them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from tidings.model.publication import Texts


class TextSettings(BaseModel):
    """The words of notices: placeholders such as `{title}`, `{deadline|date}`, `{summary|cut:300}` are filled in."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    title: str = Field(default="", max_length=500)
    """The title, such as `{title}`; empty means as the pipeline writes it."""
    text: str = Field(default="", max_length=2000)
    """The text below it, such as `{changes|after:. }{summary|cut:300}`; a line that says nothing is left out."""
    footer: str = Field(default="", max_length=300)
    """What stands at the end, before the delivery's id; empty means `tidings`."""
    colors: dict[str, str] = {}
    """Colors by status, event or type, such as `open = "#2ea043"`; `default` for all others."""
    fields: list[str] | None = None
    """The fields that are shown, by their names and in this order, such as `["Deadline", "Budget"]`."""
    username: str = Field(default="", max_length=80)
    """The name shown as the sender, where the service lets one choose (Discord)."""
    avatar: str = Field(default="", max_length=2048)
    """The https address of the picture shown beside it (Discord)."""


NO_TEXTS = Texts()


def texts_of(words: TextSettings) -> Texts:
    """Return the values that are set."""
    return Texts(
        title=words.title,
        text=words.text,
        footer=words.footer,
        colors=words.colors,
        fields=tuple(words.fields) if words.fields is not None else None,
        username=words.username,
        avatar=words.avatar,
    )
