"""Mirrors: copies of cards and id indexes in other stores, which can be read while tidings is down."""
