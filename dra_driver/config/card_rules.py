"""The card rules: the configuration of each card of each node, as the chart writes its value
`cards`, in JSON.

::

    {"sliceCount": 6, "modes": ["whole", "shared", "drs"], "rules": [
      {"nodeSelector": {"example.com/gcu-use": "inference"}, "modes": ["shared"]},
      {"nodes": ["node-7"], "cards": ["0000:0d:00.0"], "sliceCount": 4}]}

The first two are for every card, unless a rule says otherwise; a later rule overrides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from dra_driver.config.loader import problems
from dra_driver.model.errors import InvalidValue
from dra_driver.model.mode import Mode
from dra_driver.model.pci import PciAddress

DEFAULT_SLICE_COUNT: Final = 6


@dataclass(frozen=True, slots=True)
class CardConfig:
    """The modes of a card, and its number of slices if it is shared."""

    slice_count: int = DEFAULT_SLICE_COUNT
    modes: frozenset[Mode] = frozenset(Mode)


def _address(text: str) -> str:
    try:
        return str(PciAddress.parse(text))
    except InvalidValue as error:
        raise ValueError(str(error)) from error  # pydantic adds the place


SliceCount = Annotated[int, Field(ge=1, le=16)]
Modes = Annotated[frozenset[Mode], Field(min_length=1)]
Addresses = Annotated[tuple[Annotated[str, AfterValidator(_address)], ...], Field(min_length=1)]


class _RulesModel(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Rule(_RulesModel):
    """Conditions, and the configuration of the cards that fulfil them. A rule without `nodes`,
    `node_selector` and `cards` applies to all cards."""

    nodes: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    node_selector: Annotated[dict[str, str], Field(min_length=1)] | None = None
    cards: Addresses | None = None
    slice_count: SliceCount | None = None
    modes: Modes | None = None

    def applies(self, node: str, labels: Mapping[str, str], card: PciAddress) -> bool:
        """Whether the card fulfils all conditions."""
        return (
            (self.nodes is None or node in self.nodes)
            and (self.node_selector is None or self.node_selector.items() <= labels.items())
            and (self.cards is None or str(card) in self.cards)
        )


class CardRules(_RulesModel):
    """The whole file. Empty, it offers every card in every mode, in six slices."""

    slice_count: SliceCount = DEFAULT_SLICE_COUNT
    modes: Modes = frozenset(Mode)
    rules: tuple[Rule, ...] = ()

    @property
    def needs_labels(self) -> bool:
        """Whether a rule depends on labels of the Node."""
        return any(rule.node_selector is not None for rule in self.rules)

    def offer(self, node: str, labels: Mapping[str, str], card: PciAddress) -> CardConfig:
        count, modes = self.slice_count, self.modes
        for rule in self.rules:
            if rule.applies(node, labels, card):
                count = rule.slice_count if rule.slice_count is not None else count
                modes = rule.modes if rule.modes is not None else modes
        return CardConfig(count, modes)


def load_card_rules(path: Path | None) -> CardRules:
    """The rules in the file; those of an empty file if `path` is None.

    Raises InvalidValue with the file, the place in it, the given value and the allowed ones.
    """
    if path is None:
        return CardRules()
    try:
        return CardRules.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidValue(
            f"the file of card rules {path} cannot be read: {error.strerror}",
            remedy="name an existing file with --card-rules",
        ) from error
    except ValidationError as error:
        raise InvalidValue(
            f"the card rules {path}: {problems(error, whole='the file')}",
            remedy="docs/user/sharing.md has their format",
        ) from error
