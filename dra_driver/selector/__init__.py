"""What a CEL selector of a DeviceClass or a request means for a device. Pure; no I/O."""
