"""The process around the allocator: watches, decides, writes allocations."""
