"""Pure: what is published and held, and a pod's claims in; allocations or reasons out."""
