"""Writes to the API server, several at a time."""
