"""The sample world's texts: enough of them, consistent, invented, and none written twice."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import resources

import pytest

DATA = resources.files("tidings.sample") / "data"
FIRST_ITEM = 9_000_001
SIZE_BYTES_MAX = 1_500_000
LISTS = [
    "news/articles.jsonl",
    "hacker_news/items.jsonl",
    "hacker_news/updates.jsonl",
    "eu_funding/opportunities.jsonl",
    "eu_funding/changes.jsonl",
    "github/repos.jsonl",
    "github/issues.jsonl",
    "feeds/feeds.jsonl",
    "feeds/entries.jsonl",
]


def lines(path):
    return [json.loads(line) for line in (DATA / path).read_text("utf-8").split("\n")[:-1]]


def document(path):
    return json.loads((DATA / path).read_text("utf-8"))


def is_alive(item):
    return not (item.get("deleted") or item.get("dead"))


@pytest.fixture(scope="module")
def articles():
    return lines("news/articles.jsonl")


@pytest.fixture(scope="module")
def items():
    return {item["id"]: item for item in lines("hacker_news/items.jsonl")}


@pytest.fixture(scope="module")
def updates():
    return lines("hacker_news/updates.jsonl")


@pytest.fixture(scope="module")
def opportunities():
    return lines("eu_funding/opportunities.jsonl")


@pytest.fixture(scope="module")
def repositories():
    return {f"{repo['owner']}/{repo['name']}": repo for repo in lines("github/repos.jsonl")}


@pytest.fixture(scope="module")
def issues():
    return lines("github/issues.jsonl")


@pytest.fixture(scope="module")
def entries():
    return lines("feeds/entries.jsonl")


# Files


@pytest.mark.parametrize("path", LISTS)
def test_every_line_is_one_object_for_any_way_of_splitting(path):
    text = (DATA / path).read_text("utf-8")

    assert text.endswith("\n")
    assert text.splitlines() == text.split("\n")[:-1]
    assert all(isinstance(json.loads(line), dict) for line in text.splitlines())


def test_the_whole_stays_small_enough_to_ship():
    paths = [*LISTS, "news/outlets.json", "github/awesome.json", "discord/channel.json", "README.md"]

    assert sum(len((DATA / path).read_bytes()) for path in paths) < SIZE_BYTES_MAX


def test_the_readme_says_that_everything_is_invented_and_names_every_field():
    readme = (DATA / "README.md").read_text("utf-8")

    assert "Everything in this folder is invented" in readme
    for path in LISTS:
        assert f"`{path}`" in readme
        fields = {field for record in lines(path) for field in record}
        assert {field for field in fields if f"`{field}`" not in readme and f'"{field}"' not in readme} == set()


def test_every_address_is_reserved_for_examples():
    everything = "\n".join((DATA / path).read_text("utf-8") for path in [*LISTS, "github/awesome.json"])
    hosts = set(re.findall(r"https?://([\w.-]+)", html.unescape(everything).replace("\\/", "/")))
    loopback = {"localhost", "127.0.0.1"}

    assert {host for host in hosts if not host.endswith(".example")} <= loopback | {"github.com"}


@pytest.mark.parametrize("path", ["news/articles.jsonl", "hacker_news/items.jsonl", "feeds/entries.jsonl"])
def test_a_record_has_an_age_or_arrives_later(path):
    for record in lines(path):
        assert ("minutes_ago" in record) != ("arrives_after_seconds" in record)
        assert record.get("minutes_ago", 0) >= 0
        assert 15 <= record.get("arrives_after_seconds", 15) <= 600


# News


def test_three_outlets_publish_with_furniture_around_the_text():
    outlets = document("news/outlets.json")

    assert len(outlets) == 3
    for outlet in outlets:
        assert outlet["host"].endswith(".example")
        assert all(
            outlet[part] for part in ("tagline", "menu", "cookie_notice", "newsletter_box", "footer", "most_read")
        )


def test_news_fill_three_days_and_keep_arriving(articles):
    present = [article["minutes_ago"] for article in articles if "minutes_ago" in article]

    assert len(articles) >= 42
    assert len(articles) - len(present) >= 8
    assert max(present) <= 3 * 24 * 60
    assert {age // (24 * 60) for age in present} == {0, 1, 2}


def test_articles_are_addressed_once_and_written_by_known_outlets(articles):
    outlets = {outlet["id"] for outlet in document("news/outlets.json")}

    assert len({article["id"] for article in articles}) == len(articles)
    assert len({(article["outlet"], article["path"]) for article in articles}) == len(articles)
    assert {article["outlet"] for article in articles} == outlets


def test_articles_have_the_length_of_articles(articles):
    for article in articles:
        body = [text for text in article["paragraphs"] if not text.startswith("## ")]
        assert 5 <= len(body) <= 10, article["id"]
        assert len(" ".join(body).split()) >= 180, article["id"]


def test_some_stories_are_told_by_two_outlets_in_other_words(articles):
    tellings: dict[str, list[dict]] = {}
    for article in articles:
        tellings.setdefault(article["story"], []).append(article)
    pairs = [told for told in tellings.values() if len(told) > 1]

    assert len(pairs) >= 8
    for first, second in pairs:
        assert first["outlet"] != second["outlet"]
        assert first["title"] != second["title"]


def test_sentiment_by_the_provider_is_the_exception(articles):
    counts = Counter(article["provider_sentiment"] for article in articles)

    assert set(counts) == {None, "positive", "negative", "neutral"}
    assert counts[None] > len(articles) / 2


def test_one_page_times_out_and_one_is_gone(articles):
    assert Counter(article["fault"] for article in articles if article["fault"]) == {"times_out_twice": 1, "gone": 1}


# Hacker News


def test_threads_are_many_long_and_deep(items):
    kinds = Counter(item["type"] for item in items.values())
    threads = [item for item in items.values() if item.get("descendants", 0) >= 15]

    def depth(item):
        return 1 + depth(items[item["parent"]]) if "parent" in item else 0

    assert kinds["comment"] >= 260
    assert kinds["job"] >= 3
    assert (kinds["poll"], kinds["pollopt"], kinds["banana"]) == (1, 4, 1)
    assert len(threads) >= 8
    assert max(depth(item) for item in items.values()) >= 5
    for prefix in ("Ask HN: ", "Show HN: "):
        assert any(item.get("title", "").startswith(prefix) for item in items.values())
    assert sum(not is_alive(item) for item in items.values()) >= 10


def test_item_ids_are_dense_and_grow_with_time(items):
    times = [
        -60 * item["minutes_ago"] if "minutes_ago" in item else item["arrives_after_seconds"] for item in items.values()
    ]

    assert list(items) == list(range(FIRST_ITEM, FIRST_ITEM + len(items)))
    assert times == sorted(times)


def test_kids_and_parents_agree_at_the_start_and_after_every_arrival(items, updates):
    world: dict[int, dict] = {}
    waiting = sorted(items.values(), key=lambda item: item.get("arrives_after_seconds", 0))
    moments = sorted(
        {item.get("arrives_after_seconds", 0) for item in waiting} | {u["arrives_after_seconds"] for u in updates}
    )
    for moment in moments:
        world |= {item["id"]: dict(item) for item in waiting if item.get("arrives_after_seconds", 0) == moment}
        for update in updates:
            if update["arrives_after_seconds"] == moment:
                world[update["id"]].update(update)
        assert_consistent(world)


def assert_consistent(world):
    children: dict[int, set[int]] = {}
    for item in world.values():
        if "parent" in item:
            children.setdefault(item["parent"], set()).add(item["id"])
        assert item.get("kids") != []
    for item in world.values():
        kids = item.get("kids", [])
        assert len(kids) == len(set(kids))
        assert set(kids) == children.get(item["id"], set())

    def comments_below(item):
        below = [world[kid] for kid in item.get("kids", [])]
        return sum(is_alive(kid) + comments_below(kid) for kid in below)

    for item in world.values():
        if "descendants" in item:
            assert item["descendants"] == comments_below(item), item["id"]


def test_a_comment_is_younger_than_what_it_answers(items):
    for item in items.values():
        if "parent" in item:
            assert item["parent"] < item["id"]


def test_kids_are_ranked_rather_than_sorted(items):
    assert any(item["kids"] != sorted(item["kids"]) for item in items.values() if "kids" in item)


def test_the_poll_and_its_options_name_each_other(items):
    (poll,) = (item for item in items.values() if item["type"] == "poll")

    assert [items[part]["poll"] for part in poll["parts"]] == [poll["id"]] * 4


def test_dead_and_deleted_items_have_the_shapes_of_the_api(items):
    for item in items.values():
        if item.get("deleted"):
            assert "by" not in item
            assert "text" not in item
        elif item.get("dead") and item["type"] == "story":
            assert not {"title", "url", "descendants"} & set(item)
        elif item.get("dead"):
            assert item["text"] == "[dead]"


def test_updates_come_in_order_and_concern_items_that_exist(items, updates):
    assert updates == sorted(updates, key=lambda update: update["arrives_after_seconds"])
    arrivals = [item for item in items.values() if "arrives_after_seconds" in item]
    assert len(arrivals) >= 25
    assert sum("score" in update for update in updates) >= 8
    for update in updates:
        assert items[update["id"]].get("arrives_after_seconds", 0) <= update["arrives_after_seconds"]
        assert set(update) <= {"id", "arrives_after_seconds", "score", "descendants", "kids"}


class Fragment(HTMLParser):
    """Notes the tags of a comment and whether they close as Hacker News closes them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.open, self.tags, self.closed_paragraphs = [], set(), 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag != "p":
            self.open.append(tag)
        if tag == "a":
            assert dict(attrs)["rel"] == "nofollow"

    def handle_endtag(self, tag):
        self.closed_paragraphs += tag == "p"
        if tag != "p":
            assert self.open.pop() == tag


def test_comments_are_html_fragments_as_hacker_news_writes_them(items):
    tags: set[str] = set()
    entities: Counter[str] = Counter()
    for item in items.values():
        text = item.get("text", "")
        fragment = Fragment(text)
        assert fragment.open == []
        assert fragment.closed_paragraphs == 0
        assert not text.startswith("<p>") or text.startswith("<p><pre>")
        bare = re.sub(r"<[^>]*>", "", text)
        assert not set("'\"/") & set(bare), item["id"]
        assert re.search(r"&(?!(#x27|#x2F|quot|gt|lt|amp);)", bare) is None, item["id"]
        tags |= fragment.tags
        entities.update(re.findall(r"&[#\w]+;", text))

    assert tags == {"p", "i", "pre", "code", "a"}
    assert {"&#x27;", "&#x2F;", "&quot;", "&gt;"} <= set(entities)


# Funding


def test_calls_are_many_and_of_every_sort(opportunities):
    at_the_start = [row for row in opportunities if "arrives_after_seconds" not in row]

    assert len({row["reference"] for row in opportunities}) == len(opportunities)
    assert len({row["identifier"] for row in at_the_start}) >= 60
    assert {row["status"] for row in opportunities} == {"31094501", "31094502", "31094503"}
    assert {row["type"] for row in opportunities} == {"1", "2", "8"}
    assert len({row["programme"] for row in opportunities}) >= 8
    assert len(opportunities) - len(at_the_start) == 4


def test_identifiers_cannot_be_mistaken_for_real_ones(opportunities):
    assert all(row["identifier"].startswith(("DEMO-", "DemoAid/")) for row in opportunities)


def test_deadlines_cover_the_awkward_cases(opportunities):
    live = [row for row in opportunities if row["status"] == "31094502"]

    assert sum(len(row["deadline_days"]) > 1 and row["deadline_model"] == "multiple cut-off" for row in live) >= 2
    assert any(not row["deadline_days"] for row in live)
    assert any(row["deadline_days"] and max(row["deadline_days"]) < 0 for row in live)
    assert any(min(row["deadline_days"], default=0) < 0 < max(row["deadline_days"], default=0) for row in live)
    for row in opportunities:
        assert row["deadline_days"] == sorted(row["deadline_days"])
        assert re.fullmatch(r"\d\d:\d\d", row["deadline_time"])
        assert (row["status"] == "31094501") == (row["opening_days"] > 0)


def test_one_topic_comes_in_three_other_languages(opportunities):
    foreign = [row for row in opportunities if row["language"] != "en"]
    english = [
        row for row in opportunities if row["language"] == "en" and row["identifier"] == foreign[0]["identifier"]
    ]

    assert len(foreign) == 3
    assert len({row["identifier"] for row in foreign}) == 1
    assert len(english) == 1


def test_titles_of_strangers_try_to_ping_and_to_format(opportunities):
    titles = " ".join(row["title"] + row["call_title"] for row in opportunities)

    for trap in ("@everyone", "@here", "](https://", "**", "~~"):
        assert trap in titles


def test_changes_concern_known_calls_and_move_deadlines(opportunities):
    known = {row["reference"]: row for row in opportunities}
    changes = lines("eu_funding/changes.jsonl")
    moved = [change for change in changes if "deadline_days" in change]

    assert len(moved) == 2
    assert all(change["deadline_days"] != known[change["reference"]]["deadline_days"] for change in moved)
    assert all(change["reference"] in known for change in changes)


# GitHub


def test_repositories_can_be_read_unless_they_are_gone_or_blocked(repositories):
    behaviours = Counter(repo["behaviour"] for repo in repositories.values())

    assert len({repo["id"] for repo in repositories.values()}) == len(repositories)
    assert behaviours.pop("normal") >= 30
    assert behaviours == {"renamed": 1, "gone": 1, "issues_disabled": 1, "blocked": 1}
    for name, repo in repositories.items():
        readable = repo["behaviour"] not in {"gone", "blocked"}
        words = len(repo["readme"].split())
        assert (150 <= words <= 400) if readable else words == 0, name
        assert repo["label"] in {label["name"] for label in repo["labels"]}
        assert list(repo["languages"].values()) == sorted(repo["languages"].values(), reverse=True)


def test_readmes_carry_badges_and_code(repositories):
    readmes = [repo["readme"] for repo in repositories.values()]

    assert sum("](https://badges." in readme for readme in readmes) >= 25
    assert all("```" in readme or "\n    " in readme for readme in readmes if readme)


def test_issues_belong_to_repositories_whose_labels_they_wear(repositories, issues):
    assert len({issue["id"] for issue in issues}) == len(issues)
    assert len({(issue["repo"], issue["number"]) for issue in issues}) == len(issues)
    for issue in issues:
        repo = repositories[issue["repo"]]
        assert repo["behaviour"] in {"normal", "renamed"}
        assert set(issue["labels"]) <= {label["name"] for label in repo["labels"]}


def test_issues_are_many_and_of_every_sort(repositories, issues):
    def is_for_beginners(issue):
        return repositories[issue["repo"]]["label"] in issue["labels"]

    real = [issue for issue in issues if not issue["pull_request"]]
    comments = [comment["body"] for issue in issues for comment in issue["comments"]]

    assert len(real) >= 100
    assert len(issues) - len(real) == 10
    assert sum(is_for_beginners(issue) for issue in real) >= 50
    assert any(is_for_beginners(issue) for issue in issues if issue["pull_request"])
    assert sum("Traceback" in (issue["body"] or "") for issue in issues) >= 3
    assert any(issue["body"] is None for issue in issues)
    assert any(issue["user"] is None for issue in issues)
    assert any(issue["assignees"] for issue in issues)
    assert any(issue["locked"] for issue in issues)
    assert sum("work on this" in body for body in comments) >= 8


def test_issues_age_plausibly(issues):
    for issue in issues:
        assert ("days_ago" in issue) != ("arrives_after_seconds" in issue)
        ages = [comment["days_ago"] for comment in issue["comments"]]
        assert ages == sorted(ages, reverse=True)
        if "days_ago" in issue:
            assert issue["updated_days_ago"] <= min([issue["days_ago"], *ages])
            assert all(age <= issue["days_ago"] for age in ages)


def test_the_list_names_every_repository_and_a_few_oddities(repositories):
    listed = document("github/awesome.json")
    links = [entry["link"] for entry in listed["repositories"]]

    assert set(listed) == {"sponsors", "technologies", "repositories"}
    for name, repo in repositories.items():
        assert f"https://github.com/{repo['former_full_name'] or name}" in links
    assert sum("github.com" not in link for link in links) == 1
    assert sum("label" not in entry for entry in listed["repositories"]) == 1
    assert sum(not entry["technologies"] for entry in listed["repositories"]) == 1
    spellings = [repo for repo in repositories.values() if repo["listed_label"] not in {None, repo["label"]}]
    assert len(spellings) >= 5


# Feeds and Discord


def test_two_feeds_have_pages_behind_their_entries(entries):
    feeds = {feed["id"]: feed for feed in lines("feeds/feeds.jsonl")}
    counts = Counter(entry["feed"] for entry in entries)

    assert {feed["format"] for feed in feeds.values()} == {"atom", "json"}
    assert set(counts) == set(feeds)
    assert min(counts.values()) >= 10
    assert len({entry["id"] for entry in entries}) == len(entries)
    assert all(len(" ".join(entry["paragraphs"]).split()) >= 120 for entry in entries)


def test_the_channel_has_a_name_and_a_topic():
    channel = document("discord/channel.json")

    assert channel["channel"]
    assert "invented" in channel["topic"]


# Prose


def test_no_text_is_written_twice(articles, items, opportunities, repositories, issues, entries):
    texts = [text for page in (*articles, *entries) for text in page["paragraphs"]]
    texts += [
        page[field]
        for page in (*articles, *entries)
        for field in ("title", "description", "summary")
        if page.get(field)
    ]
    texts += [item["text"] for item in items.values() if item.get("text", "[dead]") != "[dead]"]
    texts += [
        item["title"] for item in items.values() if "title" in item and item["type"] == "story" and "url" not in item
    ]
    texts += [row["description_html"] for row in opportunities]
    texts += [repo["readme"] for repo in repositories.values() if repo["readme"]]
    texts += [issue["title"] for issue in issues]
    texts += [issue["body"] for issue in issues if issue["body"]]
    texts += [comment["body"] for issue in issues for comment in issue["comments"]]

    assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_no_long_sentence_is_reused_between_items(articles, items, opportunities, issues, entries):
    owners: dict[str, set] = {}
    for owner, text in (
        *((page["id"], " ".join(page["paragraphs"])) for page in (*articles, *entries)),
        *((item["id"], item.get("text", "")) for item in items.values()),
        *((row["reference"], row["description_html"]) for row in opportunities),
        *((issue["id"], issue["body"] or "") for issue in issues),
    ):
        plain = re.sub(r"<[^>]+>", " ", html.unescape(text))
        for sentence in re.split(r"(?<=[.!?])\s+", plain):
            if len(sentence) >= 40:
                owners.setdefault(" ".join(sentence.lower().split()), set()).add(owner)

    assert {sentence: who for sentence, who in owners.items() if len(who) > 1} == {}
