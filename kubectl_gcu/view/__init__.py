"""``kubectl gcu view``: a page that follows the cluster, served to this machine alone."""
