"""tidings watches sources, remembers what is new, enriches it durably and delivers it."""

__version__ = "0.1.0"
