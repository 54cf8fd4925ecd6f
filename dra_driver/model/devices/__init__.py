"""How a card's devices look in a ResourceSlice, in the device plugin and on the Node."""
