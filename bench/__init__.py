"""Measurements: `make bench-NAME` prints a table for people, then one JSON object."""
