"""What `kubectl gcu` does to the terminal, or to the program, that reads its output."""

from __future__ import annotations

import os

import pytest

from dra_driver.model.pci import PciAddress
from kubectl_gcu import main, output
from kubectl_gcu.inventory.views import CardView, NodeView, ServedBy
from kubectl_gcu.main import FAILED


def test_what_cards_say_moves_no_cursor() -> None:
    card = CardView(PciAddress(0, 1, 0, 0), model="S60\x1b[2J\n", problems=("lost\u202e",))
    text = output.table([NodeView("a", ServedBy.CLAIMS, (card,))], wide=False, colour=False)
    assert "S60\ufffd[2J   free" in text
    assert "lost\ufffd" in text


def test_a_reader_that_ends_early_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        monkeypatch.setattr(main, "run", lambda *_: out.write("a line\n"))
        with pytest.raises(SystemExit) as ended:
            main.main()
    assert ended.value.code == FAILED
