"""The DRA plugin that the kubelet calls: registration, NodePrepareResources, device health."""
