"""The dashboard: server-rendered pages for people."""
