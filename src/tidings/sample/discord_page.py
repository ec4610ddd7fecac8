"""Draws the stand-in's channel the way Discord shows one: dark, embeds with a colored edge, no script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.sample.discord import Posted

SHOWN_MAX = 100
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_STYLE = """
:root { color-scheme: dark; }
* { box-sizing: border-box; }
body { margin: 0; background: #313338; color: #dbdee1;
  font: 16px/1.375 "gg sans", "Noto Sans", Helvetica, Arial, sans-serif; }
header { position: sticky; top: 0; display: flex; gap: 12px; align-items: center; padding: 12px 16px;
  background: #313338; border-bottom: 1px solid #26282c; box-shadow: 0 1px 0 #1e1f22; z-index: 1; }
header .hash { color: #80848e; font-size: 24px; line-height: 1; }
header h1 { margin: 0; font-size: 16px; color: #f2f3f5; white-space: nowrap; }
header p { margin: 0; color: #b5bac1; font-size: 14px; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; min-width: 0; border-left: 1px solid #3f4147; padding-left: 12px; }
header .online { margin-left: auto; color: #949ba4; font-size: 13px; white-space: nowrap; }
header .online::before { content: ""; display: inline-block; width: 8px; height: 8px; margin-right: 6px;
  border-radius: 50%; background: #23a55a; }
main { max-width: 900px; padding: 16px 0 40px; }
.note { margin: 0 16px 16px; color: #949ba4; font-size: 14px; }
article { display: grid; grid-template-columns: 40px minmax(0, 1fr); gap: 0 16px; padding: 8px 16px; }
article:hover { background: #2e3035; }
.avatar { width: 40px; height: 40px; border-radius: 50%; background: #5865f2; color: #fff; display: grid;
  place-items: center; font-weight: 700; }
.author { color: #f2f3f5; font-weight: 600; }
.app { margin: 0 6px; padding: 1px 5px; border-radius: 3px; background: #5865f2; color: #fff; font-size: 11px;
  font-weight: 600; }
time { color: #949ba4; font-size: 12px; }
.embed { margin-top: 6px; max-width: 520px; background: #2b2d31; border-left: 4px solid var(--edge, #1e1f22);
  border-radius: 4px; padding: 10px 16px 14px 12px; }
.embed h2 { margin: 4px 0 0; font-size: 16px; color: #f2f3f5; overflow-wrap: anywhere; }
.embed h2 a { color: #00a8fc; text-decoration: none; }
.embed h2 a:hover, .embed h2 a:focus-visible { text-decoration: underline; }
.embed .description { margin: 8px 0 0; font-size: 14px; line-height: 1.3; white-space: pre-wrap;
  overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 8px; margin: 8px 0 0; font-size: 14px;
  line-height: 1.3; }
dl > div { grid-column: span 6; }
dl > div.inline { grid-column: span 2; }
dt { color: #f2f3f5; font-weight: 600; margin-bottom: 2px; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
footer { margin-top: 8px; color: #b5bac1; font-size: 12px; overflow-wrap: anywhere; }
@media (max-width: 560px) { header p { display: none; } dl > div.inline { grid-column: span 3; } }
"""


def channel_page(channel: dict[str, Any], messages: Sequence[Posted]) -> str:
    """Return the whole page; everything posted is escaped."""
    shown = list(messages)[-SHOWN_MAX:]
    note = f"{len(messages)} messages" if len(messages) != 1 else "1 message"
    left_out = f", the last {SHOWN_MAX} shown" if len(messages) > len(shown) else ""
    topic = f"<p>{escape(channel['topic'])}</p>" if channel.get("topic") else ""
    name = escape(str(channel["channel"]))
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>#{name} · {escape(str(channel['guild']))}</title><style>{_STYLE}</style></head><body>"
        f'<header><span class="hash" aria-hidden="true">#</span><h1>{name}</h1>{topic}'
        f'<span class="online">{escape(str(channel["members_online"]))} online</span></header>'
        f'<main><p class="note">A stand-in for Discord: {note}{left_out}. Nothing here left this machine.</p>'
        f"{''.join(_message(channel, posted) for posted in shown)}</main></body></html>"
    )


def _message(channel: dict[str, Any], posted: Posted) -> str:
    author = str(posted.body.get("username") or channel["webhook_name"])
    at = datetime.fromtimestamp(posted.at, UTC)
    embeds = "".join(_embed(embed) for embed in posted.body.get("embeds", []))
    content = posted.body.get("content")
    said = f'<p class="description">{_plain(content)}</p>' if content else ""
    avatar = f'<div class="avatar" aria-hidden="true">{escape(author[:1].upper())}</div>'
    return (
        f'<article id="m{escape(posted.id)}">{avatar}<div>'
        f'<span class="author">{escape(author)}</span><span class="app">APP</span>'
        f'<time datetime="{at.isoformat()}">{at:%d/%m/%Y %H:%M} UTC</time>{said}{embeds}</div></article>'
    )


def _embed(embed: dict[str, Any]) -> str:
    color = embed.get("color")
    edge = f' style="--edge: #{color:06x}"' if isinstance(color, int) else ""
    parts = [f'<section class="embed"{edge}>']
    if title := embed.get("title"):
        url = embed.get("url")
        linked = f'<a href="{escape(url)}" rel="noopener noreferrer">{_plain(title)}</a>' if url else _plain(title)
        parts.append(f"<h2>{linked}</h2>")
    if description := embed.get("description"):
        parts.append(f'<p class="description">{_plain(description)}</p>')
    if fields := embed.get("fields"):
        parts.append(f"<dl>{''.join(_field(field) for field in fields)}</dl>")
    footer = (embed.get("footer") or {}).get("text")
    stamp = embed.get("timestamp")
    if footer or stamp:
        parts.append(f"<footer>{' • '.join(filter(None, (escape(footer or ''), _stamp(stamp))))}</footer>")
    return "".join([*parts, "</section>"])


def _field(field: dict[str, Any]) -> str:
    kind = ' class="inline"' if field.get("inline") else ""
    return f"<div{kind}><dt>{_plain(field['name'])}</dt><dd>{_plain(field['value'])}</dd></div>"


def _stamp(timestamp: str | None) -> str:
    return f"{datetime.fromisoformat(timestamp).astimezone(UTC):%d/%m/%Y %H:%M}" if timestamp else ""


def _plain(text: str) -> str:
    """Show text as Discord does: a backslash before a mark only makes the mark plain."""
    return escape(_ESCAPED.sub(r"\1", text))
