"""The node side without DRA: the kubelet's device plugins."""
