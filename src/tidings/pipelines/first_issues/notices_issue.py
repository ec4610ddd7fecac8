"""What is announced of an issue: one notice, when it is new and free."""

from __future__ import annotations

from tidings.model.clock import read_time
from tidings.model.publication import Notice, NoticeField
from tidings.model.workflow import Work
from tidings.pipelines.first_issues.body_issue import IssueBody
from tidings.pipelines.first_issues.cards_issue import SIGN_WORDS, is_free, issue_card, search_attributes

ANNOUNCED_FOR_MS = 7 * 86_400_000
"""An issue opened longer ago is no news, however new it is to us."""


def announce_issue(work: Work) -> tuple[Notice, ...]:
    """Tell people of an issue once: when it is new, to us and on GitHub, and free."""
    body: IssueBody = work.body
    opened = read_time(body.created_at)
    is_news = opened is not None and work.now_ms - opened <= ANNOUNCED_FOR_MS
    is_first = body.first_shown_at is not None and body.first_shown_at == body.processed_at
    if not is_first or not is_news or not is_free(body):
        return ()
    return (issue_notice(body),)


def renew_issue(body: IssueBody, _queued: Notice, _now_ms: int) -> Notice | None:
    """Tell of the issue as it is now, unless it is taken or closed."""
    return issue_notice(body) if is_free(body) else None


def issue_notice(body: IssueBody) -> Notice:
    """Write the notice of an issue."""
    fields = [NoticeField("Repository", body.repo)]
    card = issue_card(body)
    if card.difficulty is not None:
        fields.append(NoticeField("Difficulty", f"{card.difficulty} of 10"))
    if body.language:
        fields.append(NoticeField("Language", body.language))
    if card.good_signs:
        fields.append(
            NoticeField("Good to know", ", ".join(SIGN_WORDS[sign] for sign in card.good_signs), inline=False)
        )
    if card.first_steps:
        fields.append(NoticeField("First steps", "\n".join(card.first_steps[:3]), inline=False))
    return Notice(
        title=body.title,
        url=body.url,
        text=body.introduction or "",
        color=0x7057FF,
        fields=tuple(fields),
        time=body.created_at,
        attributes={**search_attributes(body), "type": "issue", "by": body.author, "score": card.difficulty},
    )
