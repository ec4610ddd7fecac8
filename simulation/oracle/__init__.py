"""Judges the store from outside: plain SELECTs after every commit against what people and services saw."""
