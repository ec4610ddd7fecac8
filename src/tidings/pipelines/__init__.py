"""What tidings is for: one folder a pipeline, none knows another. They are registered in pyproject.toml."""
