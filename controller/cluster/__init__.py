"""The cluster as the watches tell it, and what its pods, nodes and volumes say by themselves."""
