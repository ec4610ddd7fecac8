"""Stage 1: find."""
