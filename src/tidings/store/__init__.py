"""Stage 2: remember."""
