"""Our own health: logs, metrics, alerts."""
