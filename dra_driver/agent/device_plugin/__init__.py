"""The front end without DRA: the device plugin, and what the Node shows of its cards."""
