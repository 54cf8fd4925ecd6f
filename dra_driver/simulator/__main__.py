"""``python -m dra_driver.simulator``: the same as the command ``gcu-simulator``."""

from dra_driver.simulator.main import main

if __name__ == "__main__":
    main()
