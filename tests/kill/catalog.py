"""Everything that an agent is killed in."""

from __future__ import annotations

from typing import Final

from tests.kill.operations import OPERATIONS
from tests.kill.plugin_operations import PLUGIN_OPERATIONS

EVERYTHING: Final = (*OPERATIONS, *PLUGIN_OPERATIONS)
BY_NAME: Final = {operation.name: operation for operation in EVERYTHING}
