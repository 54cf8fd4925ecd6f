"""The node side with DRA: the kubelet plugin, claims' status and devices' health."""
