"""Groups items of all pipelines that tell the same event: stories."""
