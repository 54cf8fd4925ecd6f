"""Logs, metrics and probes of the programs."""
