"""Stage 3: advance."""
