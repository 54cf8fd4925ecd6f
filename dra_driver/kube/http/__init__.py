"""Connections to the API server: HTTP over sockets that are kept (ADR 14)."""
