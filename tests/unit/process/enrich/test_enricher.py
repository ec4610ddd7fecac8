"""The enricher: never paid twice, never over budget, local where there is no endpoint or no usable answer."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.support.clock import ManualClock

from tidings.model.answers import IssueAnalysis, IssueFacts, Provenance, RepoFacts, RepoSummary, Sentiment, Summary
from tidings.model.clock import day_of
from tidings.model.contracts import Enricher as EnricherContract
from tidings.model.contracts import Ledger
from tidings.model.errors import Ambiguous, SlowDown, Transient
from tidings.model.pace import Pace
from tidings.model.web import Response
from tidings.process.enrich import local
from tidings.process.enrich.circuit import EndpointDown
from tidings.process.enrich.endpoint import Endpoint, OutOfCredit, Unusable
from tidings.process.enrich.enricher import CACHE, COST, TOKENS, MeteredEnricher, OverBudget, Terms
from tidings.process.memory_ledger import MemoryLedger

DAY_MS = 86_400_000
NOON_MS = 1_800_000_000_000 // DAY_MS * DAY_MS + DAY_MS // 2
TEXT = "The harbour town of Lindholm will close its last coal plant in June. A heat pump station will take over in May."
GOOD = {"summary": "The last coal plant of Lindholm closes in June."}


class Model:
    """A caller whose answers are scripted: a status and content each, or an exception; the last one repeats."""

    def __init__(self, *script: tuple[int, object] | Exception) -> None:
        self.script = list(script) or [(200, GOOD)]
        self.calls = 0
        self.asked = asyncio.Event()
        self.running = 0
        self.most_running = 0
        self.delay_seconds = 0.0

    async def call(self, method: str, url: str, **options: Any) -> Response:
        self.calls += 1
        self.asked.set()
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(self.delay_seconds)
        self.running -= 1
        said = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(said, Exception):
            raise said
        status, content = said
        if status != 200:
            return Response(status, url, {"retry-after": "9"}, msgspec.json.encode(content))
        message = {"content": content if isinstance(content, str) else msgspec.json.encode(content).decode()}
        body = {
            "choices": [{"finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }
        return Response(200, url, {}, msgspec.json.encode(body))


class Setting:
    """An enricher around a scripted model, with its ledger and its clock."""

    def __init__(self, *script: tuple[int, object] | Exception, **terms: Any) -> None:
        self.clock = ManualClock(NOON_MS)
        self.ledger = MemoryLedger(self.clock)
        self.model = Model(*script)
        self.slept: list[float] = []
        self.seen: list[tuple[str, int, int]] = []
        endpoint = Endpoint(self.model, base_url="http://127.0.0.1/v1", model="m1", api_key="k", clock=self.clock)
        rate = terms.get("rate_per_minute", 6000.0)
        self.enricher = MeteredEnricher(
            self.ledger,
            endpoint=endpoint,
            terms=Terms(price_in=1.0, price_out=10.0, **terms),
            clock=self.clock,
            on_tokens=lambda model, tokens_in, tokens_out: self.seen.append((model, tokens_in, tokens_out)),
            pace=Pace(rate, burst=1, now=lambda: self.clock.now_ms() / 1000),
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    def spent(self, name: str) -> int:
        return self.ledger.sheet(name).spent

    def reserved(self, name: str) -> int:
        return self.ledger.sheet(name).reserved


def test_it_keeps_the_contract_of_the_model() -> None:
    ledger: Ledger = MemoryLedger()
    contract: EnricherContract = MeteredEnricher(ledger)
    assert contract


async def test_without_an_endpoint_the_local_default_answers_for_free() -> None:
    enricher = MeteredEnricher(MemoryLedger())
    summary, provenance = await enricher.summarize(TEXT, title="Lindholm", words=30)
    assert summary == local.summarize(TEXT, "Lindholm", 30)
    assert provenance == Provenance(model="local")
    assert isinstance((await enricher.judge_sentiment(TEXT))[0], Sentiment)
    assert isinstance((await enricher.summarize_repo(RepoFacts(full_name="ada/engine")))[0], RepoSummary)
    assert isinstance((await enricher.analyze_issue(IssueFacts(title="Fix it")))[0], IssueAnalysis)


async def test_an_answer_tells_who_gave_it_and_what_it_cost() -> None:
    setting = Setting()
    answer, provenance = await setting.enricher.summarize(TEXT, pipeline="news")
    assert answer == Summary(**GOOD)
    assert provenance == Provenance(model="m1", tokens_in=100, tokens_out=20, cost_micros=300)
    assert setting.spent(TOKENS) == setting.spent(f"{TOKENS}:news") == 120
    assert setting.spent(COST) == setting.spent(f"{COST}:news") == 300
    assert setting.seen == [("m1", 100, 20)]


async def test_the_same_text_is_never_paid_for_twice() -> None:
    setting = Setting()
    await setting.enricher.summarize(TEXT)
    answer, provenance = await setting.enricher.summarize(TEXT)
    assert answer == Summary(**GOOD)
    assert provenance == Provenance(model="m1", cached=True)
    assert setting.model.calls == 1
    assert setting.spent(TOKENS) == 120


async def test_the_same_text_asked_at_once_is_paid_for_once() -> None:
    setting = Setting()
    setting.model.delay_seconds = 0.01
    answers = await asyncio.gather(*(setting.enricher.summarize(TEXT) for _ in range(5)))
    assert {answer.summary for answer, _ in answers} == {GOOD["summary"]}
    assert setting.model.calls == 1


@pytest.mark.parametrize(
    "other", [{"title": "Another title"}, {"words": 20}, {"text": TEXT + " More."}, {"question": "judge_sentiment"}]
)
async def test_another_question_is_another_answer(other: dict[str, Any]) -> None:
    setting = Setting((200, GOOD), (200, {"label": "neutral", "score": 0.0} if "question" in other else GOOD))
    await setting.enricher.summarize(TEXT)
    ask = setting.enricher.judge_sentiment if other.pop("question", None) else setting.enricher.summarize
    await ask(other.pop("text", TEXT), **other)
    assert setting.model.calls == 2


async def test_another_model_or_a_damaged_entry_is_asked_again() -> None:
    setting = Setting()
    await setting.enricher.summarize(TEXT)
    ((name, key), _), *_ = setting.ledger._answers.items()
    assert name == CACHE
    assert key.startswith("summarize.v1:m1:")
    await setting.ledger.put(name, key, b'{"summary": 3}', 60)
    await setting.enricher.summarize(TEXT)
    assert setting.model.calls == 2


async def test_an_empty_text_is_not_worth_a_call() -> None:
    setting = Setting()
    _, provenance = await setting.enricher.summarize("  \n ")
    assert provenance == Provenance(model="local")
    assert setting.model.calls == 0


@pytest.mark.parametrize("limit", ["daily_tokens_max", "daily_cost_micros_max"])
async def test_over_budget_waits_for_the_next_day_and_asks_nobody(limit: str) -> None:
    setting = Setting(**{limit: 500})
    with pytest.raises(OverBudget) as caught:
        await setting.enricher.summarize(TEXT)
    assert isinstance(caught.value, SlowDown)
    assert caught.value.retry_after_seconds == 12 * 3600
    assert setting.model.calls == 0
    assert setting.reserved(TOKENS) == setting.reserved(COST) == 0


async def test_the_budget_holds_at_every_moment_and_begins_anew_each_day() -> None:
    limit = 10_000
    setting = Setting(daily_tokens_max=limit, concurrency=10)
    setting.model.delay_seconds = 0.001
    highest = 0

    async def ask(number: int) -> bool:
        nonlocal highest
        try:
            await setting.enricher.summarize(f"{TEXT} Number {number}.")
        except OverBudget:
            return False
        finally:
            sheet = setting.ledger.sheet(TOKENS)
            highest = max(highest, sheet.spent + sheet.reserved)
        return True

    answered = await asyncio.gather(*(ask(number) for number in range(40)))
    assert 0 < sum(answered) < 40
    assert highest <= limit
    assert setting.reserved(TOKENS) == 0

    setting.clock.advance(seconds=12 * 3600)
    assert await ask(99)
    assert [day for name, day in setting.ledger.sheets if name == TOKENS] == [
        day_of(NOON_MS),
        day_of(NOON_MS + DAY_MS // 2),
    ]


@pytest.mark.parametrize(
    ("said", "kind", "spent"),
    [
        ((429, {"error": {"code": "rate_limit_exceeded", "message": "slow"}}), SlowDown, 0),
        ((429, {"error": {"code": "insufficient_quota", "message": "no money"}}), OutOfCredit, 0),
        ((500, {"error": {"message": "oops"}}), Transient, 0),
        (Transient("not reached"), Transient, 0),
    ],
)
async def test_a_failed_call_costs_only_what_it_used(said: Any, kind: type[Exception], spent: int) -> None:
    setting = Setting(said, daily_tokens_max=100_000)
    with pytest.raises(kind):
        await setting.enricher.summarize(TEXT, pipeline="news")
    assert setting.spent(TOKENS) == spent
    assert setting.reserved(TOKENS) == 0


async def test_an_unknown_outcome_counts_as_the_worst_case() -> None:
    setting = Setting(Ambiguous("reset after the request"), daily_tokens_max=100_000)
    with pytest.raises(Transient):
        await setting.enricher.summarize(TEXT)
    assert setting.spent(TOKENS) > 1000
    assert setting.reserved(TOKENS) == 0


async def test_a_cancelled_question_gives_its_reservation_back_and_counts_as_the_worst_case() -> None:
    setting = Setting(daily_tokens_max=100_000)
    setting.model.delay_seconds = 30
    asking = asyncio.create_task(setting.enricher.summarize(TEXT))
    await setting.model.asked.wait()
    reserved = setting.reserved(TOKENS)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.sleep(0)
    assert setting.reserved(TOKENS) == 0
    assert setting.spent(TOKENS) == reserved > 0


async def test_an_unusable_answer_falls_back_to_the_local_default_and_says_so() -> None:
    setting = Setting((200, "no idea"))
    answer, provenance = await setting.enricher.summarize(TEXT, pipeline="news")
    assert answer == local.summarize(TEXT)
    assert provenance == Provenance(model="local", fell_back=True, tokens_in=200, tokens_out=40, cost_micros=600)
    assert setting.spent(f"{TOKENS}:news") == 240

    await setting.enricher.summarize(TEXT)
    assert setting.model.calls == 4


async def test_without_the_fall_back_an_unusable_answer_is_tried_again_later() -> None:
    setting = Setting((200, "no idea"), falls_back=False)
    with pytest.raises(Unusable):
        await setting.enricher.summarize(TEXT)


async def test_a_busy_server_is_not_replaced_by_the_local_default() -> None:
    setting = Setting((503, {"error": {"message": "overloaded"}}))
    with pytest.raises(Transient):
        await setting.enricher.summarize(TEXT)


DOWN = (500, {"error": {"message": "oops"}})


async def ask(setting: Setting, number: int) -> Summary:
    return (await setting.enricher.summarize(f"{TEXT} {number}"))[0]


async def fail_for(setting: Setting, numbers: range) -> list[type]:
    answers = [(await asyncio.gather(ask(setting, n), return_exceptions=True))[0] for n in numbers]
    return [type(answer) for answer in answers]


async def test_an_endpoint_that_fails_for_all_lets_questions_wait() -> None:
    setting = Setting(DOWN)

    assert await fail_for(setting, range(6)) == [Transient, Transient, *[EndpointDown] * 4]
    assert setting.model.calls == 3

    setting.clock.advance(seconds=16)
    assert await fail_for(setting, range(6)) == [EndpointDown] * 6
    assert setting.model.calls == 4, "one question tries, the others wait"


async def test_the_first_answer_after_an_outage_lets_all_others_in() -> None:
    setting = Setting(*[DOWN] * 5, (200, GOOD))
    await fail_for(setting, range(4))
    for _ in range(3):
        setting.clock.advance(seconds=600)
        await fail_for(setting, range(1))

    assert [(await ask(setting, n)).summary for n in range(4)] == [GOOD["summary"]] * 4


async def test_one_question_that_fails_again_and_again_holds_up_no_other() -> None:
    setting = Setting(*[DOWN] * 5, (200, GOOD))
    for _ in range(5):
        assert await fail_for(setting, range(1)) == [Transient]

    assert (await ask(setting, 1)).summary == GOOD["summary"]


async def test_an_endpoint_whose_answers_cannot_be_used_is_not_down() -> None:
    setting = Setting((200, "no idea"), falls_back=False)
    assert await fail_for(setting, range(6)) == [Unusable] * 6


async def test_only_so_many_questions_are_asked_at_once() -> None:
    setting = Setting(concurrency=3)
    setting.model.delay_seconds = 0.005
    await asyncio.gather(*(setting.enricher.summarize(f"{TEXT} {n}") for n in range(12)))
    assert setting.model.most_running == 3


async def test_questions_are_spaced_and_long_waits_go_back_to_the_queue() -> None:
    setting = Setting(rate_per_minute=6.0)
    for number in range(4):
        await setting.enricher.summarize(f"{TEXT} {number}")
    with pytest.raises(SlowDown) as caught:
        await setting.enricher.summarize(f"{TEXT} 4")
    assert setting.slept == [10.0, 20.0, 30.0]
    assert caught.value.retry_after_seconds == 40.0


async def test_nobody_asks_while_the_server_wants_a_pause() -> None:
    setting = Setting((429, {"error": {"code": "rate_limit_exceeded"}}), (200, GOOD))
    with pytest.raises(SlowDown):
        await setting.enricher.summarize(TEXT)
    await setting.enricher.summarize(TEXT)
    assert setting.slept == [9.0]


async def test_the_memory_ledger_forgets_in_time() -> None:
    clock = ManualClock(NOON_MS)
    ledger = MemoryLedger(clock)
    await ledger.put("a", "k", b"1", 10)
    assert await ledger.get("a", "k") == b"1"
    assert await ledger.get("b", "k") is None
    clock.advance(seconds=11)
    assert await ledger.get("a", "k") is None
