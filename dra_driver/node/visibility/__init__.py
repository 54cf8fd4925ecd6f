"""Which cards a container sees, by all claims of its pod."""
