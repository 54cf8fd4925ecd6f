"""ResourceSlices: which devices the node should publish, and how the API server gets there."""
