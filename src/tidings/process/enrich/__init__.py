"""Adds judgment to texts: four questions, answered locally or by an AI endpoint."""
