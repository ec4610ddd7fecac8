"""The outlets' pages: an article in the middle of everything a newspaper puts around it, and the feed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.sample.news import Outlet, Story


def article_page(outlet: Outlet, story: Story, link: str, base: str) -> str:
    """Write the page: cookie notice, menu, the article with a newsletter box in it, share buttons, side box, footer."""
    moment = _moment(story)
    blocks = [_block(paragraph) for paragraph in story.paragraphs]
    middle = max(1, len(blocks) // 2)
    most_read = "".join(f"<li>{escape(line)}</li>" for line in outlet.most_read)
    byline = f'<p class="byline">By <span rel="author">{escape(story.author)}</span></p>' if story.author else ""
    return f"""<!doctype html>
<html lang="{escape(story.language)}"><head><meta charset="utf-8">
<title>{escape(story.title)} | {escape(outlet.name)}</title>
<link rel="canonical" href="{escape(link)}">
<link rel="alternate" type="application/rss+xml" href="{_home(outlet, base)}{outlet.rss_path}">
<meta property="og:type" content="article"><meta property="og:title" content="{escape(story.title)}">
<meta property="og:site_name" content="{escape(outlet.name)}"><meta name="author" content="{escape(story.author)}">
<meta property="article:published_time" content="{moment.isoformat()}">
<meta name="description" content="{escape(story.description or "")}"><script>window.dataLayer=[];</script></head><body>
<div class="cookie-banner" role="dialog">{escape(outlet.cookie_notice)} <button>Accept all</button></div>
<header><a class="logo" href="{_home(outlet, base)}/">{escape(outlet.name)}</a>
<p class="tagline">{escape(outlet.tagline)}</p>{_menu(outlet, base)}</header>
<main><article><h1>{escape(story.title)}</h1>{byline}
<time datetime="{moment.isoformat()}">{moment:%d %B %Y, %H:%M} UTC</time>
{"".join(blocks[:middle])}
<aside class="newsletter"><h4>Newsletter</h4><p>{escape(outlet.newsletter_box)}</p>
<form><input type="email"></form></aside>
{"".join(blocks[middle:])}
<ul class="share"><li><a href="#share-x">Share</a></li><li><a href="#share-mail">Mail</a></li><li>Copy link</li></ul>
<p class="tags">{" ".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in story.tags)}</p></article>
<aside class="most-read"><h3>Most read</h3><ol>{most_read}</ol></aside>
</main><footer><p>{escape(outlet.footer)}</p>{_menu(outlet, base)}</footer></body></html>"""


def front_page(outlet: Outlet, stories: Sequence[tuple[Story, str]], base: str) -> str:
    """Write the page that announces the feed and lists the headlines."""
    lines = "".join(f'<li><a href="{escape(link)}">{escape(story.title)}</a></li>' for story, link in stories)
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(outlet.name)}</title>
<link rel="alternate" type="application/rss+xml" href="{_home(outlet, base)}{outlet.rss_path}">
</head><body><header><h1>{escape(outlet.name)}</h1>{_menu(outlet, base)}</header><ul>{lines}</ul></body></html>"""


def gone_page(outlet: Outlet | None) -> str:
    """Write the page for what is not there."""
    name = escape(outlet.name) if outlet else "Not found"
    return f"<!doctype html><html><head><title>{name}</title></head><body><h1>404</h1><p>Not here.</p></body></html>"


def feed(outlet: Outlet, stories: Sequence[tuple[Story, str]], url: str) -> bytes:
    """Write the outlet's RSS, with tracking in its links as outlets do."""
    items = "\n".join(_item(story, link) for story, link in stories)
    built = f"<lastBuildDate>{_rfc822(stories[0][0])}</lastBuildDate>" if stories else ""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom"
 xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>{escape(outlet.name)}</title><link>{escape(url.removesuffix(outlet.rss_path))}/</link>
<atom:link rel="self" type="application/rss+xml" href="{escape(url)}"/>
<description>{escape(outlet.tagline)}</description><language>en</language><ttl>60</ttl>{built}
{items}
</channel></rss>""".encode()


def etag_of(body: bytes) -> str:
    """Return the validator of an answer."""
    return f'"{sha256(body).hexdigest()[:20]}"'


def _item(story: Story, link: str) -> str:
    author = f"<dc:creator><![CDATA[{story.author}]]></dc:creator>" if story.author else ""
    text = f"<p>{escape(story.description)}</p>" if story.description else ""
    tags = "".join(f"<category><![CDATA[{tag}]]></category>" for tag in story.tags)
    return (
        f"<item><title><![CDATA[{story.title}]]></title>"
        f"<link>{escape(link)}?utm_source=rss_feed&amp;utm_medium=rss</link>"
        f'<guid isPermaLink="true">{escape(link)}</guid><pubDate>{_rfc822(story)}</pubDate>'
        f"<description><![CDATA[{text}]]></description>{author}{tags}<content:encoded/></item>"
    )


def _block(paragraph: str) -> str:
    if paragraph.startswith("## "):
        return f"<h2>{escape(paragraph[3:])}</h2>\n"
    return f"<p>{escape(paragraph)}</p>\n"


def _menu(outlet: Outlet, base: str) -> str:
    home = _home(outlet, base)
    return "<nav><ul>" + "".join(f'<li><a href="{home}/">{escape(e)}</a></li>' for e in outlet.menu) + "</ul></nav>"


def _home(outlet: Outlet, base: str) -> str:
    return f"{base.rstrip('/')}/{outlet.host}"


def _moment(story: Story) -> datetime:
    return datetime.fromtimestamp(story.published_ms / 1000, UTC)


def _rfc822(story: Story) -> str:
    return format_datetime(_moment(story), usegmt=False)
