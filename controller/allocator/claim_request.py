"""What a claim asks for: ``spec.devices`` of a ResourceClaim, read once and checked."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.allocator.claim_fields import (
    check_fields,
    is_ignored_constraint,
    is_ignored_selector,
)
from controller.allocator.device_request import Constraint, DeviceRequest, device_request
from dra_driver.config.device_config import ISOLATION_FIELD, ISOLATION_OF_MODE, merged_config
from dra_driver.model.claims.amounts import CAPACITY_OF_MODE, requested, requested_amount
from dra_driver.model.claims.claim import ClaimRef, Object, ReadOnlyObject
from dra_driver.model.claims.request_config import RequestConfig
from dra_driver.model.errors import Refused
from dra_driver.model.names import (
    ATTR_TYPE,
    CLASS_DRS,
    CLASS_PART,
    CLASS_SHARED,
    CLASS_WHOLE,
    DRIVER,
)

MOST_RESULTS = 32  # resource.k8s.io/v1, AllocationResultsMaxSize
_SUPPORTED = "use exactly or firstAvailable, with CEL selectors and a mode that is documented"
_OF_TYPE = f'device.attributes["{DRIVER}"].{ATTR_TYPE} == "{{}}"'
_MOST_CONFIGS = 64  # 2 × DeviceConfigMaxSize: the API's limit for an allocation


@dataclass(frozen=True, slots=True)
class ExactRequest:
    """An ``exactly`` request or one subrequest of ``firstAvailable``, whose name is
    ``request/sub``. `tolerations` are passed on as they are. `unwritten` is what its configuration
    asks for and ``capacity.requests`` does not say, by the names of its fields: kube-scheduler
    reads the latter alone. Devices of other drivers serve a request that is `of_others`."""

    name: str
    class_name: str
    device_request: DeviceRequest
    tolerations: tuple[Object, ...]
    unwritten: Mapping[str, str]
    of_others: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """The first of `alternatives` that can be served is served."""

    name: str
    alternatives: tuple[ExactRequest, ...]

    @property
    def of_others(self) -> bool:
        """Whether devices of other drivers are to serve it."""
        return any(each.of_others for each in self.alternatives)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A claim that waits for devices."""

    ref: ClaimRef
    claim: Object
    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]

    @property
    def shape(self) -> tuple[object, ...]:
        """Equal for claims that ask the same, as those made from one template do."""
        return (
            tuple(
                (each.name, each.class_name, each.device_request, each.of_others)
                for each in self.exact_requests()
            ),
            self.constraints,
        )

    def exact_requests(self) -> Iterator[ExactRequest]:
        """All alternatives of all requests."""
        for each in self.requests:
            yield from each.alternatives


def parse_claim(
    claim: Object,
    classes: Mapping[str, ReadOnlyObject],
    ignored_fields: Collection[str] = frozenset(),
    others: Collection[str] = frozenset(),
) -> ClaimRequest:
    """Read the claim. Raises Refused, naming the form or the field, for what is not supported, and
    InvalidValue for what no API server would have stored. Fields of these names that are not
    supported are ignored. `others` are the names of requests that other drivers serve."""
    check_fields(claim, ignored_fields)
    return _Parser(ClaimRef.of(claim), claim, classes, ignored_fields, others).parse()


def parse_exact(
    ref: ClaimRef,
    claim: Object,
    classes: Mapping[str, ReadOnlyObject],
    request: str,
    form: Mapping[str, Any],
) -> ExactRequest:
    """Read one form of the claim, which may be new and have no name or UID yet, so that `ref` is
    what errors call it. `request` is the form's full name. Raises as `parse_claim` does."""
    return _Parser(ref, claim, classes, frozenset(), frozenset()).exact(request, form)


@dataclass(frozen=True, slots=True)
class _Parser:
    ref: ClaimRef
    claim: Object
    classes: Mapping[str, ReadOnlyObject]
    ignored_fields: Collection[str]
    others: Collection[str]

    def parse(self) -> ClaimRequest:
        devices = self._devices()
        requests = tuple(map(self._request, devices.get("requests") or ()))
        constraints = tuple(
            self._constraint(each)
            for each in devices.get("constraints") or ()
            if not is_ignored_constraint(each, self.ignored_fields)
        )
        self._check_limits(requests)
        return ClaimRequest(self.ref, self.claim, requests, constraints)

    def _devices(self) -> Mapping[str, Any]:
        return self.claim["spec"].get("devices") or {}

    def _request(self, entry: Mapping[str, Any]) -> Request:
        name, subs = entry["name"], entry.get("firstAvailable") or ()
        if subs and entry.get("exactly"):
            raise self._unsupported(name, "exactly together with firstAvailable")
        if entry.get("exactly"):
            return Request(name, (self.exact(name, entry["exactly"]),))
        if not subs:
            fields = ", ".join(sorted(entry.keys() - {"name"}))
            form = f"an unknown form of request{fields and f' ({fields})'}"
            raise self._unsupported(name, form)
        return Request(name, tuple(self.exact(f"{name}/{sub['name']}", sub) for sub in subs))

    def exact(self, name: str, entry: Mapping[str, Any]) -> ExactRequest:
        """Raises Refused and InvalidValue."""
        class_name = entry["deviceClassName"]
        device_class = self.classes.get(class_name)
        if device_class is None:
            raise Refused(
                f"claim {self.ref}, request {name}: the DeviceClass {class_name} does not exist",
                remedy="create it, or name one that kubectl get deviceclasses lists",
            )
        selectors = [
            *(device_class["spec"].get("selectors") or ()),
            *(entry.get("selectors") or ()),
        ]
        of_others = name in self.others
        config = RequestConfig() if of_others else self._config(name, class_name)
        # Names of others' capacities are theirs: kube-scheduler compares them as they are.
        written = (
            (entry.get("capacity") or {}).get("requests") or {}
            if of_others
            else requested(entry, f"claim {self.ref}, request {name}")
        )
        capacity = self._capacity(name, written, config)
        if config.measures is not None and class_name == CLASS_WHOLE:
            raise Refused(
                f"claim {self.ref}, request {name}: its GcuConfig asks for "
                f"{', '.join(config.measures.texts)}, and {class_name} is of whole cards",
                remedy=f"request {CLASS_PART}, {CLASS_SHARED} or {CLASS_DRS}",
            )
        expressions = [
            self._expression(name, selector)
            for selector in selectors
            if not is_ignored_selector(selector, self.ignored_fields)
        ]
        if config.mode is not None:
            expressions.append(_OF_TYPE.format(config.mode))
        tolerations = tuple(entry.get("tolerations") or ())
        return ExactRequest(
            name=name,
            class_name=class_name,
            device_request=device_request(
                tuple(expressions),
                self._count(name, entry),
                tuple(sorted(capacity.items())),
                json.dumps(tolerations, sort_keys=True) if tolerations else "[]",
                admin_access=bool(entry.get("adminAccess")),
                packing=config.packing,
                measures=config.measures,
            ),
            tolerations=tolerations,
            unwritten=_unwritten(written, config),
            of_others=of_others,
        )

    def _config(self, request: str, class_name: str) -> RequestConfig:
        """What the class and the claim say for the request; the claim wins. Raises InvalidValue if
        an entry for this driver is not understood, and Refused for an amount in a class."""
        owner = f"the DeviceClass {class_name}"
        entries = self.classes[class_name]["spec"].get("config") or ()
        of_class = merged_config(entries, request, owner)
        if of_class.asked:
            raise Refused(
                f"{owner} asks for {', '.join(of_class.asked)} in its configuration",
                remedy="write amounts in claims and claim templates",
            )
        of_claim = merged_config(self._devices().get("config") or (), request, f"claim {self.ref}")
        return of_claim.over(of_class)

    def _capacity(
        self, request: str, written: Mapping[str, str], config: RequestConfig
    ) -> Mapping[str, str]:
        """The amounts of both forms, GcuConfig and what is `written` in ``capacity.requests``.
        Raises Refused if they differ: the two allocators would each grant another one; and where
        GcuConfig has measures, too."""
        capacity = dict(written)
        if config.measures is not None and config.amounts:
            raise Refused(
                f"claim {self.ref}, request {request}: its GcuConfig asks for "
                f"{', '.join(config.asked)}",
                remedy="leave one of them out",
            )
        for name, amount in config.amounts.items():
            other = capacity.setdefault(name, str(amount))
            if requested_amount(other) != amount:
                raise Refused(
                    f"claim {self.ref}, request {request}: its GcuConfig asks for {name} {amount}, "
                    f"and its capacity.requests for {other}",
                    remedy="ask for the same amount in both, or leave one of them out",
                )
        return capacity

    def _count(self, request: str, entry: Mapping[str, Any]) -> int | None:
        mode = entry.get("allocationMode", "ExactCount")
        if mode == "All":
            return None
        if mode != "ExactCount":
            raise self._unsupported(request, f"allocationMode {mode}")
        return int(entry.get("count", 1))

    def _expression(self, request: str, selector: Mapping[str, Any]) -> str:
        try:
            return str(selector["cel"]["expression"])
        except KeyError as error:
            raise self._unsupported(request, "a selector that is not CEL") from error

    def _constraint(self, entry: Mapping[str, Any]) -> Constraint:
        """From a DeviceConstraint (resource.k8s.io/v1)."""
        requests = frozenset(entry.get("requests") or ())
        if entry.get("matchAttribute") and entry.get("distinctAttribute"):
            raise Refused(
                f"claim {self.ref}: a constraint with matchAttribute and distinctAttribute is not "
                "supported",
                remedy="write one constraint for each",
            )
        if entry.get("matchAttribute"):
            return Constraint(entry["matchAttribute"], requests, distinct=False)
        if entry.get("distinctAttribute"):
            return Constraint(entry["distinctAttribute"], requests, distinct=True)
        raise Refused(
            f"claim {self.ref}: a constraint of an unknown form is not supported",
            remedy="use matchAttribute or distinctAttribute",
        )

    def _check_limits(self, requests: Sequence[Request]) -> None:
        # A request for all devices takes at least one.
        asked = sum(
            min(each.device_request.count or 1 for each in r.alternatives) for r in requests
        )
        if asked > MOST_RESULTS:
            raise Refused(
                f"claim {self.ref} requests {asked} devices, and a claim can hold {MOST_RESULTS}",
                remedy="split the claim",
            )
        configs = sum(self._configs(requests))
        if configs > _MOST_CONFIGS:
            raise Refused(
                f"claim {self.ref} needs {configs} entries of configuration in its allocation, and "
                f"{_MOST_CONFIGS} are possible",
                remedy="name fewer requests in the entries of config, or split the claim",
            )

    def _configs(self, requests: Sequence[Request]) -> Iterator[int]:
        """At least how many entries class and claim add, whatever subrequests are chosen
        (results.py has how they are counted)."""
        certain = [each.alternatives[0] for each in requests if len(each.alternatives) == 1]
        for name in {each.class_name for each in certain}:
            yield len(self.classes[name]["spec"].get("config") or ())
        for entry in self._devices().get("config") or ():
            named = entry.get("requests") or ()
            yield sum("/" not in name for name in named) if named else 1

    def _unsupported(self, request: str, form: str) -> Refused:
        what = f"claim {self.ref}, request {request}: {form} is not supported"
        return Refused(what, remedy=_SUPPORTED)


def _unwritten(written: Mapping[str, str], config: RequestConfig) -> Mapping[str, str]:
    found = {name: str(n) for name, n in config.amounts.items() if name not in written}
    if config.measures is not None and not written:
        found |= config.measures.texts
    if config.mode is not None and CAPACITY_OF_MODE[config.mode] not in written:
        found[ISOLATION_FIELD] = ISOLATION_OF_MODE[config.mode]
    return found
