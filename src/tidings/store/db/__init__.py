"""How tidings talks to SQLite and PostgreSQL: connections, transactions, named statements."""
