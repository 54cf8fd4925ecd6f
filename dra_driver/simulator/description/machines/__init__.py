"""The machines that come with the simulator, each a YAML file of ``gcu-simulator create``."""
