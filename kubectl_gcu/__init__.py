"""`kubectl gcu`: shows the GCUs of a cluster and who holds them. It reads with the rights of its
user, and writes nothing."""
