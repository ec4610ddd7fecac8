"""How we touch other people's servers."""
