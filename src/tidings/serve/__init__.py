"""Stage 5: show."""
