"""What a source's health means for a person, what helps, and why it is asked next when it is."""

from __future__ import annotations

from tidings.model.views import SourceView

_REMEDIES = {
    "healthy": "Nothing to do.",
    "running": "It is being asked now.",
    "waiting": "It is asked for the first time within seconds, where a process asks sources.",
    "silent": "It answers, but brings nothing new for much longer than is its habit: see whether its feed moved.",
    "slow": "It asks us to slow down, or one look takes too long: give it a longer time between two.",
    "incomplete": "It held more than one look may read: look more often.",
    "out of credits": "The allowance of the day is used up; it goes on by itself.",
    "empty": "It listed things before and lists nothing now: see whether its address still holds.",
    "paused": "It is not asked until it is resumed.",
    "refused": "Its address or a setting has to change: see the error. It is still asked, less and less often.",
    "failing": "It is asked again by itself, less and less often. If the site is gone, change or remove it.",
}
_BY_ERROR = (
    ("not a public web", "For an address in your own network name it exactly under `loopback_allowed` in the file."),
    ("not the address of a public", "For an address in your own network name it exactly under `loopback_allowed`."),
    ("401", "The site wants you to sign in: it has no public feed at this address."),
    ("403", "The site keeps programs out. See whether it offers another address for its feed."),
    ("404", "There is nothing at this address any more: open the site, and give its new address."),
    ("410", "The feed is gone for good: remove it, or give its new address."),
    ("holds no feed", "There is no feed at this address: give that of the feed, or of a page that announces one."),
    ("certificate", "The site's certificate is not valid. It has to be mended there."),
    ("robots.txt", "The site asks programs to stay away."),
)


def remedy(view: SourceView) -> str:
    """Say what helps a source, as far as anything does."""
    if view.error and view.health in ("failing", "refused"):
        for sign, words in _BY_ERROR:
            if sign in view.error:
                return words
    return _REMEDIES.get(view.health, "")


def next_why(view: SourceView) -> str:
    """Say why a source is asked next when it is."""
    if view.health == "paused":
        return "No next look: it is paused."
    if view.failures:
        return f"After {view.failures} failed looks the time between two doubles, up to six hours."
    if view.until is not None:
        return "The source asked for that time."
    if view.last_run is None:
        return f"Asked at once, then {view.schedule}."
    return f"Usually {view.schedule}; a source without a fixed time is asked by its own rhythm and wishes."
