"""Asks, before the driver is uninstalled, whether somebody still has GCUs; cleans up after it."""
