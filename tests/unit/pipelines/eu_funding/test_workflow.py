"""What happens to an opportunity between being found and being told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from tests.support.clock import ManualClock

from tidings.model.answers import Provenance, Summary
from tidings.model.clock import DAY_MS
from tidings.model.contracts import Kit
from tidings.model.errors import Transient
from tidings.model.outcome import Advance, Reject
from tidings.model.publication import Route
from tidings.model.vocabulary import vocabulary_of
from tidings.model.web import Response
from tidings.model.workflow import Work
from tidings.pipelines.eu_funding import Settings, build, endpoints
from tidings.pipelines.eu_funding.body import Opportunity
from tidings.pipelines.eu_funding.cards import present
from tidings.pipelines.eu_funding.criteria import is_fresh, is_over
from tidings.pipelines.eu_funding.facts import facts
from tidings.pipelines.eu_funding.notices import announce, renew
from tidings.pipelines.eu_funding.processors import close, publish, summarize
from tidings.process.memory_ledger import MemoryLedger
from tidings.publish.deliveries import deliveries_for

NOW = int(datetime(2026, 11, 3, 10, tzinfo=UTC).timestamp() * 1000)
LONG = "The call asks for boats that are quiet enough to pass a seal colony at dawn without waking anybody. " * 3
CALL = Opportunity(
    reference="1TOPICSen",
    identifier="HORIZON-2027-01",
    title="Quiet harbours",
    type="grant",
    status="open",
    url="https://ec.europa.eu/x/1",
    programme="HORIZON",
    programme_name="Horizon Europe",
    programme_code="43108390",
    action_type="HORIZON Innovation Actions",
    opening="2026-11-01T00:00:00Z",
    deadlines=("2026-12-01T17:00:00Z", "2027-02-01T17:00:00Z"),
    stage="multiple cut-off",
    description=LONG,
    found_at=NOW,
)
NOTHING: Any = None


def brussels(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=ZoneInfo("Europe/Brussels")).timestamp() * 1000)  # type: ignore[misc,arg-type]


class Pages:
    """A fetcher with one answer."""

    def __init__(self, status: int = 404, body: bytes = b"") -> None:
        self.status, self.body = status, body
        self.asked: list[str] = []

    async def call(self, method, url, **options):
        self.asked.append(url)
        return Response(self.status, url, {}, self.body)


class Counting:
    """An enricher that counts its answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def summarize(self, text, *, title=None, pipeline="", words=80):
        self.asked += 1
        return Summary(f"In short: {text[:20]}"), Provenance(model="counting")


def a_kit(pages: Any = None, enricher: Any = None) -> Kit:
    clock = ManualClock(NOW)
    fetcher: Any = pages or Pages()
    counting: Any = enricher or Counting()
    return Kit(fetcher, NOTHING, counting, MemoryLedger(clock), clock)


def a_work(body: Opportunity = CALL, state: str = "found", now_ms: int = NOW, **more) -> Work:
    return Work("eu_funding", "opportunity", "1TOPICS", state, 1, 1, now_ms, body=body, **more)


def call(**changes) -> Opportunity:
    return msgspec.structs.replace(CALL, **changes)


async def summarized(work: Work, kit: Kit) -> Opportunity:
    outcome = await summarize(work, kit, pages_url="https://ec.europa.eu/o")
    assert isinstance(outcome, Advance)
    return outcome.body


async def test_a_description_is_summarized_once_per_address_and_content():
    enricher = Counting()
    kit = a_kit(enricher=enricher)

    first = await summarized(a_work(), kit)
    moved = await summarized(a_work(call(deadlines=("2027-03-01T17:00:00Z",))), kit)
    rewritten = await summarized(a_work(call(description=LONG + "More.")), kit)

    assert first.summary == moved.summary == rewritten.summary == "In short: The call asks for bo"
    assert first.summarized_by == "counting"
    assert enricher.asked == 2


async def test_a_missing_description_is_fetched_in_lower_case():
    details = json.dumps({"TopicDetails": {"description": f"<p>{LONG}</p>"}}).encode()
    pages = Pages(200, details)

    body = await summarized(a_work(call(description="")), a_kit(pages))

    assert pages.asked == ["https://ec.europa.eu/o/data/topicDetails/horizon-2027-01.json"]
    assert body.description == LONG.strip()
    assert body.summary


async def test_a_call_nobody_describes_is_told_by_its_facts():
    enricher = Counting()

    body = await summarized(a_work(call(description="")), a_kit(enricher=enricher))

    assert body.summary == (
        "Grant of Horizon Europe (HORIZON Innovation Actions); "
        "usually for three organizations or more from different countries; "
        "open since 1 November 2026, closes on 1 December 2026, 17:00 Brussels time."
    )
    assert enricher.asked == 0


@pytest.mark.parametrize(
    "text",
    ["Link to the published call.", "Please see the website.", "https://x.example/y", "n/a", "More info here"],
)
async def test_a_description_that_only_points_elsewhere_is_left_out(text):
    body = await summarized(a_work(call(description=text, budget_eur=1_500_000)), a_kit())

    assert body.summary is not None
    assert body.summary.startswith("Grant of Horizon Europe")
    assert "with a budget of EUR 1.5 million;" in body.summary


@pytest.mark.parametrize("pages", [Pages(502), Pages(200, b"<html>"), Pages(200, b'{"TopicDetails": 3}')])
async def test_details_that_fail_may_be_asked_again(pages):
    with pytest.raises(Transient):
        await summarize(a_work(call(description="")), a_kit(pages), pages_url="https://ec.europa.eu/o")


async def test_a_call_that_closed_unseen_is_not_for_us():
    outcome = await summarize(a_work(call(status="closed")), a_kit(), pages_url="")

    assert outcome == Reject("closed before it was first seen")


async def test_a_known_call_that_closes_is_followed_to_its_end():
    await summarized(a_work(call(status="closed"), accepted=CALL), a_kit())


def test_a_call_waits_at_most_a_week_to_be_summarized():
    assert is_fresh(a_work(now_ms=NOW + 7 * DAY_MS), queue_days=7)
    refused = is_fresh(a_work(now_ms=NOW + 7 * DAY_MS + 1), queue_days=7)

    assert not refused
    assert getattr(refused, "reason", "") == "waited longer than 7 days"


def test_a_revived_call_waits_anew():
    assert is_fresh(a_work(now_ms=NOW + 30 * DAY_MS, state_since_ms=NOW + 29 * DAY_MS), queue_days=7)


def test_a_published_call_wakes_when_its_next_deadline_comes_near_or_is_over():
    near = publish(a_work(state="summarized"))
    last = a_work(state="published")
    last.now_ms = brussels(2026, 11, 28, 9)
    outcome = publish(last)

    assert near.due_at == brussels(2026, 11, 17, 8)
    assert outcome.due_at == int(datetime(2026, 12, 1, 17, tzinfo=UTC).timestamp() * 1000)
    assert (outcome.body.first_found_at, outcome.body.as_of) == (NOW, last.now_ms)


def test_a_call_without_a_deadline_is_looked_at_again():
    outcome = publish(a_work(call(deadlines=(), status="forthcoming"), "summarized"))

    assert outcome.due_at == NOW + 90 * DAY_MS


def test_a_call_is_over_after_its_last_deadline():
    later = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000)
    end = int(datetime(2027, 2, 2, tzinfo=UTC).timestamp() * 1000)

    assert not is_over(a_work(now_ms=later))
    assert is_over(a_work(now_ms=end))
    assert close(a_work(now_ms=end)).body.status == "closed"


def test_the_card_names_the_next_deadline_of_its_time():
    body = publish(a_work(state="summarized")).body
    later = publish(a_work(body, "published", now_ms=NOW + 60 * DAY_MS)).body

    shown, again = present("1TOPICS", body), present("1TOPICS", later)

    assert shown.card.deadline == "2026-12-01T17:00:00Z"
    assert again.card.deadline == "2027-02-01T17:00:00Z"
    assert shown.sort == again.sort == NOW
    assert shown.document is not None
    assert shown.document().attributes["programme"] == ["HORIZON", "Horizon Europe", "43108390"]


def notices(body: Opportunity, accepted: Opportunity | None = None, state: str = "summarized", now_ms: int = NOW):
    return announce(a_work(body, state, now_ms, accepted=accepted), max_age_days=7)


def test_a_new_call_is_announced_with_its_eight_fields():
    (notice,) = notices(call(summary="Boats, quietly."))

    assert (notice.title, notice.url, notice.text, notice.color) == (
        "Quiet harbours",
        CALL.url,
        "Boats, quietly.",
        0x2EA043,
    )
    assert [(field.name, field.value) for field in notice.fields] == [
        ("Identifier", "HORIZON-2027-01"),
        ("Status", "Open"),
        ("Type", "Grant"),
        ("Opening date", "1 November 2026"),
        ("Deadline", "1 December 2026, 17:00 Brussels time (next of 2)"),
        ("Stage", "Multiple cut-off"),
        ("Programme", "Horizon Europe (HORIZON)"),
        ("Action type", "HORIZON Innovation Actions"),
    ]
    assert notice.attributes["event"] == "new"


def test_colors_tell_the_status():
    shown = [
        notices(call(status=status), accepted=call(status="open", deadlines=()))[0].color for status in ("forthcoming",)
    ]
    (closed,) = notices(call(status="closed"), accepted=CALL)

    assert shown == [0x1F6FEB]
    assert closed.color == 0x6E7681


def test_the_first_run_announces_nothing_old():
    old = call(is_baseline=True, opening="2026-10-01T00:00:00Z")
    coming = call(is_baseline=True, status="forthcoming", opening="2027-01-01T00:00:00Z")

    assert notices(old) == notices(coming) == ()
    assert len(notices(call(is_baseline=True))) == 1
    assert len(notices(msgspec.structs.replace(coming, ingested="2026-11-01T00:00:00Z"))) == 1
    assert len(notices(msgspec.structs.replace(old, is_baseline=False))) == 1


def test_a_call_without_a_deadline_is_announced_by_its_other_dates():
    undated = call(deadlines=())

    (notice,) = notices(undated)

    assert ("Deadline", "Not stated") in [(field.name, field.value) for field in notice.fields]
    assert not notices(call(deadlines=(), opening="2021-07-30T10:00:02Z", ingested="2026-11-01T00:00:00Z"))
    assert not notices(call(deadlines=(), opening=None, ingested="2026-10-01T00:00:00Z"))
    assert len(notices(call(deadlines=(), opening=None))) == 1


def test_the_end_of_a_call_without_a_deadline_is_news():
    (notice,) = notices(call(deadlines=(), status="closed"), accepted=call(deadlines=()))

    assert notice.text.startswith("Status: open → closed.")
    assert "Deadline" not in [field.name for field in notice.fields]


def test_the_facts_say_that_no_deadline_is_stated():
    assert facts(call(deadlines=()), NOW).endswith("no deadline is stated.")


def test_a_notice_of_an_undescribed_call_tells_the_facts_of_the_day_it_is_sent():
    pipeline = build(Settings())
    body = call(description="Link to the published call.", summary="Link to the published call.", summarized_by="x")
    (queued,) = notices(body)

    later = pipeline.renew["opportunity"](body, queued, int(datetime(2027, 1, 5, tzinfo=UTC).timestamp() * 1000))

    assert "Link to" not in queued.text
    assert "closes on 1 December 2026" in queued.text
    assert later is not None
    assert "closes on 1 February 2027" in later.text


@pytest.mark.parametrize(
    "summary",
    [
        "Seeks quiet boats for seal colonies.",
        "Visitors of harbours are to hear less.",
        "See how boats become quiet: pilots in five harbours.",
    ],
)
def test_a_summary_that_only_begins_like_a_pointer_is_told(summary):
    (notice,) = notices(call(summary=summary, summarized_by="x"))

    assert notice.text == summary


def test_an_update_that_an_earlier_release_queued_still_tells_what_changed():
    (notice,) = notices(call(summary="Boats.", summarized_by="x"))
    words = "Deadline: 1 May 2027 → 1 June 2027.\n\nBoats."
    queued = msgspec.structs.replace(
        notice,
        title="Update: Boats",
        text=words,
        summary="",
        changes="",
        attributes={**notice.attributes, "event": "update"},
    )

    renewed = renew(call(summary="Boats.", summarized_by="x"), queued, NOW)

    assert renewed is not None
    assert (renewed.title, renewed.text) == ("Update: Boats", words)


async def test_what_stands_in_the_description_of_many_calls_is_not_summarized():
    enricher = Counting()
    usual = (
        "This call (as well as the support given through it) is NOT an EU action. This call is launched solely by X."
    )

    body = await summarized(a_work(call(description=f"{usual}\n{LONG}")), a_kit(enricher=enricher))
    bare = await summarized(a_work(call(description=usual)), a_kit(enricher=enricher))

    assert body.summary == "In short: The call asks for bo"
    assert bare.summarized_by == "facts"


def test_a_moved_deadline_is_an_update():
    (notice,) = notices(call(deadlines=("2026-12-15T17:00:00Z", "2027-02-01T17:00:00Z")), accepted=CALL)

    assert notice.title == "Update: Quiet harbours"
    assert notice.changes == "Deadlines: 1 December 2026, 17:00 Brussels time → 15 December 2026, 17:00 Brussels time."
    assert notice.attributes["event"] == ["update", "deadline-moved"]


def test_a_changed_status_is_an_update():
    (notice,) = notices(CALL, accepted=call(status="forthcoming"))

    assert notice.changes == "Status: forthcoming → open."
    assert notice.attributes["event"] == ["update", "opened"]


def test_an_early_end_is_an_update_and_a_foreseen_one_is_not():
    last_day = int(datetime(2027, 2, 1, 18, tzinfo=UTC).timestamp() * 1000)

    assert [notice.changes for notice in notices(call(status="closed"), accepted=CALL)] == ["Status: open → closed."]
    assert notices(call(status="closed"), accepted=CALL, now_ms=last_day) == ()


@pytest.mark.parametrize(
    "changes",
    [{"title": "Quieter harbours"}, {"description": "x"}, {"budget_eur": 5}, {"opening": "2026-10-30T00:00:00Z"},
     {"deadlines": ("2026-12-01T00:00:00Z", "2027-02-01T17:00:00Z")},
     {"deadlines": ("2020-01-01T00:00:00Z", *CALL.deadlines)}],
)  # fmt: skip
def test_other_changes_are_shown_but_not_announced(changes):
    assert notices(call(**changes), accepted=CALL) == ()


def test_a_budget_that_changes_is_an_update():
    (notice,) = notices(call(budget_eur=20_000_000), accepted=call(budget_eur=950_000))

    assert notice.changes == "Budget: EUR 950,000 → EUR 20 million."
    assert notice.attributes["event"] == ["update", "budget-changed"]
    assert ("Budget", "EUR 20 million") in [(field.name, field.value) for field in notice.fields]


def test_an_extension_after_the_end_is_an_update():
    ended = call(status="closed", deadlines=("2026-11-01T17:00:00Z",))

    (notice,) = notices(call(deadlines=("2026-12-01T17:00:00Z",)), accepted=ended)

    assert notice.changes == "Status: closed → open. Deadline: none → 1 December 2026, 17:00 Brussels time."


def test_passing_time_is_no_news():
    assert notices(CALL, state="published") == ()


def test_routes_choose_by_programme_and_status():
    pipeline = build(Settings())
    work = a_work(call(found_at=NOW), "summarized")
    told = pipeline.announce["opportunity"](work)

    def goes(query: str) -> bool:
        route = Route("eu_funding", "eu", query)
        return bool(deliveries_for("eu_funding", work, told, [route], vocabulary_of([pipeline])))

    assert goes("programme:HORIZON status:open")
    assert goes("type:grant identifier:HORIZON-2027-01 deadline:<2027-01-01")
    assert not goes("programme:LIFE")
    assert not goes("event:update")


def test_the_pipeline_declares_what_the_documents_promise():
    settings = Settings()
    pipeline = build(settings)
    workflow = pipeline.workflows["opportunity"]
    summarize_ = workflow.named("summarize")

    assert (settings.every, settings.seen_days, settings.queue_days) == (7200, 90, 7)
    assert (summarize_.retry.attempts, summarize_.retry.exhausted, summarize_.lane) == (3, "dead_letter", "ai")
    assert pipeline.sources[0].schedule.every_seconds == 7200
    assert endpoints(settings) == (
        "https://api.tech.ec.europa.eu",
        "https://ec.europa.eu/info/funding-tenders/opportunities",
    )
    assert pipeline.sample_notice is not None
    assert pipeline.sample_notice.title.startswith("Quiet harbours")


def test_a_result_can_be_uploaded():
    admit = build(Settings()).admit
    assert admit is not None
    row = {
        "reference": "7TOPICSen",
        "metadata": {"title": ["T"], "status": ["31094501"], "type": ["1"], "language": ["en"]},
    }

    assert admit(row, way="POST").key == "7TOPICS"
