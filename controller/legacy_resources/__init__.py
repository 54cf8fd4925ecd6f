"""Whether limits of new pods become claims: decided by what nodes offer (docs/adr/0029)."""
