"""What tidings is for: one folder a pipeline, none knows another."""
