"""What keeps the database fit: migrations, checks, backups, retention, rebuilding."""
