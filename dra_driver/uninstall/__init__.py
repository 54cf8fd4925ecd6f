"""The check before an uninstall: whether claims or containers still have GCUs."""
