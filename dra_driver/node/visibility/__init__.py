"""Which cards a container sees, as the claims of its pod together tell."""
