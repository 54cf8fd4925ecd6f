"""The check before an uninstall: whether somebody still has GCUs."""
