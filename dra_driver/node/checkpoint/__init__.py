"""The node's state on disk: a journal of records, and the ledger that it replays into."""
