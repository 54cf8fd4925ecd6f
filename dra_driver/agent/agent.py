"""The agent: everything of the node side put together, in the order it must start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry

from dra_driver.agent.card_news import CardNews
from dra_driver.agent.cards import Cards
from dra_driver.agent.caretaker import Caretaker
from dra_driver.agent.claim_status import ClaimStatuses
from dra_driver.agent.closing import OpenDevices
from dra_driver.agent.forms import slice_counts
from dra_driver.agent.health import DeviceHealths
from dra_driver.agent.masters import OtherMasters
from dra_driver.agent.metrics import Metrics, NodeCollector
from dra_driver.agent.offered import OfferedDevices
from dra_driver.agent.offers import Offers
from dra_driver.agent.ports import ApiReader, Followed
from dra_driver.agent.publisher import Publisher
from dra_driver.agent.reports import DEVICE_FAILING, JOURNAL_DAMAGED, RECOVERY_FAILED, Reports
from dra_driver.agent.settings import AgentSettings
from dra_driver.agent.standing import Standing
from dra_driver.agent.startup import Startup
from dra_driver.agent.turn import Turn
from dra_driver.config.card_rules import load_card_rules
from dra_driver.hardware.drs import Drs
from dra_driver.hardware.drs_locks import DrsLocks
from dra_driver.hardware.efsmi import Efsmi
from dra_driver.hardware.machine import Machine
from dra_driver.hardware.profiles import ProfileTables
from dra_driver.hardware.sysfs import Sysfs
from dra_driver.kube.api import Api
from dra_driver.kube.events import EventRecorder
from dra_driver.kubelet_api.plugin import KubeletPlugin
from dra_driver.kubelet_api.sockets import Sockets
from dra_driver.model.card import Card
from dra_driver.model.effects import Effects
from dra_driver.model.names import DRIVER, pool_name
from dra_driver.model.pci import PciAddress
from dra_driver.node.cdi import Injection
from dra_driver.node.cdi_directory import CdiDirectory
from dra_driver.node.examiner import Examiner
from dra_driver.node.failures import Failures
from dra_driver.node.journal import Journal
from dra_driver.node.locks import Locks
from dra_driver.node.lost import Lost
from dra_driver.node.modes import all_modes
from dra_driver.node.prepare import Preparer
from dra_driver.node.reconcile import Reconciler
from dra_driver.node.recovery import Recovery
from dra_driver.telemetry.program import Deadline

_STALE_AFTER = 3  # looks at the cards that are due and did not come
_END = 10.0  # seconds to stop: for calls of the kubelet that run, and what they leave for the rest


class Agent:
    """Constructing it has no effect; `start` begins everything and returns at once.

    The order matters: recovery needs the cards to have been looked at, nothing is answered before
    recovery made journal, CDI files and cards agree, and nothing is published before claims can
    be prepared. Hardware that cannot be read holds nothing up: pods can end without it.
    """

    def __init__(
        self,
        settings: AgentSettings,
        api: Api,
        *,
        effects: Effects,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """`registry` takes the metrics."""
        state = settings.state_directory
        self.registry = registry or CollectorRegistry()
        self._metrics = Metrics(self.registry)
        self._recorder = EventRecorder(
            api, controller=f"{DRIVER}/agent", instance=settings.pod_name or settings.node_name
        )
        self._reports = Reports(self._recorder, settings.node_name)
        self._failures = Failures(closed=self._tell_closed)
        self._offers = Offers(
            api,
            settings.node_name,
            load_card_rules(settings.card_rules),
            changed=self._wake,
        )
        self._cdi = CdiDirectory(settings.cdi_dir, effects=effects)
        self._journal = Journal(state, effects=effects, damaged=self._on_damage)
        self._locks = Locks(state / "locks")
        self._tables = ProfileTables(state, effects=effects)
        sysfs = Sysfs(settings.host_root)
        efsmi = Efsmi(
            Path(settings.efsmi_path),
            timeout=settings.efsmi_timeout,
            effects=effects,
            measured=self._metrics.efsmi_call,
        )
        self._cards = Cards(
            Machine(sysfs, efsmi, error_limit=settings.error_limit),
            sysfs,
            presence_interval=settings.presence_interval,
            inventory_interval=settings.inventory_interval,
            changed=self._on_cards,
            news=CardNews(self._reports),
        )
        self._publisher = Publisher(
            api,
            settings.node_name,
            devices=OpenDevices(
                OfferedDevices(
                    self._cards,
                    self._offers,
                    self._tables,
                    published=lambda: self._publisher.devices,
                    evict=settings.evicting,
                ),
                self._failures,
                ledger=self._journal.snapshot,
                published=lambda: self._publisher.known_devices,
            ),
            held=self._held,
            evict=settings.evicting,
            turn=Turn(state / "locks" / "publisher.lock"),
            counted=self._metrics.publication,
        )
        self.registry.register(
            NodeCollector(devices=lambda: self._publisher.devices, ledger=self._journal.snapshot)
        )
        self._statuses = ClaimStatuses(
            api,
            ledger=self._journal.snapshot,
            cards=self._by_address,
            waiting=self._failures.waiting,
        )
        drs = Drs(
            efsmi,
            DrsLocks(state / "locks", patience=settings.efsmi_timeout),
            indexes=self._cards.index,
        )
        preparer = Preparer(
            claims=ApiReader(api),
            hardware=self._cards,
            journal=self._journal,
            cdi=self._cdi,
            locks=self._locks,
            node_name=settings.node_name,
            injection=Injection(settings.injection),
            steps=all_modes(
                drs=drs,
                tables=self._tables,
                journal=self._journal,
                slice_count=self._slice_count,
            ),
            failures=self._failures,
            lost=Lost(
                drs,
                ledger=self._journal.snapshot,
                suspected=lambda: self._caretaker.adopt or bool(self._cards.foreign),
            ),
        )
        self._keeper = preparer.keeper
        self._plugin = KubeletPlugin(
            Followed(self._metrics.timed(preparer), self._wake),
            DeviceHealths(
                self._cards,
                pool=pool_name(settings.node_name),
                published=lambda: self._publisher.devices,
                ledger=self._journal.snapshot,
                stale=_STALE_AFTER * settings.inventory_interval,
            ),
            Sockets.of(settings.kubelet_root, settings.pod_uid),
            silence=settings.registration_timeout,
            effects=effects,
        )
        self._caretaker = Caretaker(
            cards=self._cards,
            offers=self._offers,
            masters=OtherMasters(api, settings.node_name),
            reconciler=Reconciler(
                keeper=self._keeper, journal=self._journal, locks=self._locks, drs=drs
            ),
            examiner=Examiner(
                drs=drs,
                tables=self._tables,
                journal=self._journal,
                locks=self._locks,
                free=_free_where_unheld,
            ),
            reports=self._reports,
            changed=self._wake,
            rebuilt=self._journal.rebuilt,
            interval=settings.care_interval,
        )
        self._startup = Startup(
            [
                self._cards.start,
                self._recover,
                self._plugin.start,
                self._caretaker.look,
                self._publisher.start,
                self._statuses.start,
                self._caretaker.start,
            ]
        )
        self._standing = Standing(self.ready, self._reports)

    def start(self) -> None:
        """Run the steps of the start until they succeed, in the background."""
        self._recorder.start()
        self._startup.start()
        self._standing.start()

    def stop(self, within: float = _END) -> None:
        """Stop serving, within so many seconds. Slices and prepared claims stay: the cards are
        still there."""
        deadline = Deadline(within)
        self._standing.stop(deadline.left())
        self._startup.stop(deadline.left())
        self._plugin.stop(deadline.left())
        self._caretaker.stop(deadline.left())
        self._cards.stop(deadline.left())
        self._statuses.stop(deadline.left())
        self._publisher.stop(deadline.left())
        self._journal.close()
        self._recorder.stop(deadline.left())

    def ready(self) -> str | None:
        """Why the node does not serve GCUs right now, or None."""
        return (
            self._startup.problem
            or self._cards.problem
            or self._plugin.problem()
            or self._offers.problem
            or self._publisher.problem
        )

    def live(self) -> str | None:
        """Which thread ended, or which socket is deaf: what only a new start mends."""
        alive = {
            "the start": self._startup.is_alive,
            "the look at the agent's own state": self._standing.is_alive,
            "the writer of events": self._recorder.is_alive,
        }
        if self._startup.done.is_set():
            alive |= {
                "the look at the cards": self._cards.is_alive,
                "the publisher": self._publisher.is_alive,
                "the writer of claims' statuses": self._statuses.is_alive,
                "the care for the node": self._caretaker.is_alive,
                "the watch over the sockets": self._plugin.is_alive,
            }
        ended = [name for name, check in alive.items() if not check()]
        if ended:
            return f"{ended[0]} ended unexpectedly; see the log"
        return self._plugin.fault()

    def _recover(self) -> None:
        opening = self._journal.open()
        report = Recovery(
            keeper=self._keeper, journal=self._journal, cdi=self._cdi, locks=self._locks
        ).run(opening)
        for uid, error in report.failed.items():
            self._reports.warning(RECOVERY_FAILED, f"claim with UID {uid}: {error}")
        self._caretaker.adopt = not opening.complete

    def _slice_count(self, card: PciAddress) -> int:
        published = slice_counts(self._publisher.devices)
        return published.get(card, self._offers.of(card).slice_count)

    def _held(self) -> frozenset[PciAddress]:
        holdings = self._journal.snapshot().holdings.values()
        return frozenset(card for holding in holdings for card in holding.cards)

    def _by_address(self) -> Mapping[PciAddress, Card] | None:
        cards = self._cards.latest
        return None if cards is None else {card.address: card for card in cards}

    def _on_cards(self) -> None:
        self._wake()
        self._plugin.tell_health()

    def _tell_closed(self, device: str, reason: str) -> None:
        self._reports.warning(
            DEVICE_FAILING, f"device {device} takes no new claim for now: {reason}"
        )

    def _on_damage(self, kept: Path) -> None:
        self._metrics.journal_set_aside()
        self._reports.warning(
            JOURNAL_DAMAGED, f"the journal was damaged and is rebuilt; what was there is in {kept}"
        )

    def _wake(self) -> None:
        """A card has changed, or what is held of one: both are published, and told of claims."""
        self._publisher.wake()
        self._statuses.wake()


def _free_where_unheld(_card: PciAddress) -> bool:
    """The journal, which is asked besides, is enough: a claim that is allocated and not prepared
    has no container yet, and its prepare waits for the card's lock (ADR 8). The agent may not
    list claims."""
    return True
