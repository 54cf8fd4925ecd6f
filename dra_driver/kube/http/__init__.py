"""Connections to the API server: its address, credentials, and HTTP (ADR 14)."""
