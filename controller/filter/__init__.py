"""What a pod may have, and on which nodes, before devices are chosen."""
