"""Nouns and rules; no input or output."""
