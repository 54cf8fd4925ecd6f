"""The front for clusters without DRA: the node's cards as devices of three extended resources."""
