"""Reads the objects of a cluster: of its API server, of a saved file, of a manifest."""
