"""The device plugin, for clusters without DRA: the node's cards as three extended resources."""
