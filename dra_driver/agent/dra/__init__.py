"""The front end for DRA: slices, the kubelet plugin, the claims' status, the devices' health."""
