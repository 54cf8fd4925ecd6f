"""In which step waiting pods are, and what the controller's allocator decides about them."""
