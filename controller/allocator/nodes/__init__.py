"""Nodes as the allocator sees them, and sets of them: found by what their cards have in common."""
