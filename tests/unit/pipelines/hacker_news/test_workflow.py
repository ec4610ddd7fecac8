from __future__ import annotations

from tidings.pipelines import hacker_news
from tidings.pipelines.hacker_news import Settings, build
from tidings.pipelines.hacker_news.workflow import workflow

DIAGRAM = """\
stateDiagram-v2
    [*] --> initial_state
    initial_state --> ingested : auto_ingest (ingest)
    ingested --> validated : validate_item (validate + is_valid)
    validated --> deduplicated : check_duplicates (deduplicate)
    deduplicated --> hierarchy_resolved : resolve_hierarchy (resolve_hierarchy + is_hierarchy_valid)
    hierarchy_resolved --> indexed : index_item (index)
    indexed --> completed : complete_processing (is_complete)
    initial_state --> failed : mark_failed (record_failure) [manual]
    ingested --> failed : mark_failed (record_failure) [manual]
    validated --> failed : mark_failed (record_failure) [manual]
    deduplicated --> failed : mark_failed (record_failure) [manual]
    hierarchy_resolved --> failed : mark_failed (record_failure) [manual]
    indexed --> failed : mark_failed (record_failure) [manual]
    completed --> failed : mark_failed (record_failure) [manual]
    failed --> ingested : retry_processing (prepare_retry + is_retryable) [manual]
    completed --> [*]"""


def test_the_workflow_draws_itself_as_documented():
    assert workflow().draw_mermaid() == DIAGRAM


def test_every_automatic_step_fails_into_mark_failed_and_runs_in_the_pure_lane():
    life = workflow()

    for state in life.states[:6]:
        (step,) = life.automatic_from(state)
        assert (step.retry.exhausted, step.retry.refused, step.lane, step.is_pure) == (
            "mark_failed",
            None,
            "pure",
            True,
        )
    assert [t.name for t in life.by_hand_from("completed")] == ["mark_failed"]
    assert [t.name for t in life.next_from("failed")] == ["retry_processing"]
    assert life.standing_in("failed", due=False) == "dead"
    assert life.standing_in("completed", due=False) == "done"


def test_the_pipeline_is_declared_from_its_settings():
    settings = Settings.model_validate({"every": "2 min", "base_url": "http://127.0.0.1:9/v0", "max_retries": 5})
    pipeline = build(settings)

    assert pipeline.sources[0].schedule.every_seconds == 120
    assert pipeline.collection("items").relation == "reply"
    assert hacker_news.endpoints(settings) == ("http://127.0.0.1:9/v0",)
    assert Settings().max_retries == 3
    assert Settings().retry_window_hours == 24
