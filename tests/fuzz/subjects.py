"""All parsers, by name."""

from __future__ import annotations

from typing import Final

from tests.fuzz import api, efsmi, files, machine, selectors

SUBJECTS: Final = {
    subject.name: subject
    for room in (efsmi, machine, files, api, selectors)
    for subject in room.SUBJECTS
}
