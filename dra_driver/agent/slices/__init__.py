"""ResourceSlices: which devices the node should publish, and the writes that publish them."""
