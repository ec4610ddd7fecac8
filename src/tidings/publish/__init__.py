"""Stage 4: tell."""
