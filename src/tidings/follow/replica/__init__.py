"""A copy of the SQLite file elsewhere, kept by Litestream while everything runs."""
