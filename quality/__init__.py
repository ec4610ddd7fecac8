"""Scores what tidings makes of texts and pages, beside simple baselines. `python -m quality` prints one table."""
