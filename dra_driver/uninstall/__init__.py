"""The check before an uninstall, whether claims or containers have GCUs; the cleanup after it."""
