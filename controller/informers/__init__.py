"""What is watched: decoding of the fields that are read."""
