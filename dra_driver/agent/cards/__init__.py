"""The node's cards: their state, their events, their configuration, and foreign plugins."""
