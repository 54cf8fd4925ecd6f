"""The API server as plain dicts: one port (`Api`), one client behind it, reflectors and events."""
