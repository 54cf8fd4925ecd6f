"""The agent's metrics. docs/user/monitoring.md lists them (`make docs`)."""

from __future__ import annotations

from typing import Final

from dra_driver.telemetry.metric_spec import CounterSpec, GaugeSpec, HistogramSpec

# A prepare without the hardware takes a millisecond, one that makes an instance a second; the
# kubelet gives up after 45 s.
_CALL_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 45)
_START_SECONDS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0)
_TOOL_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60, 300)

# Labels that the DCGM exporter of NVIDIA has, too, are named as there: UUID, pci_bus_id, device,
# modelName, namespace, pod, container.
CARD: Final = ("pci_bus_id", "UUID", "device", "modelName")

CARD_INFO: Final = GaugeSpec(
    "gcu_card_info",
    "1 for each card of the node. `device` is that of `/dev` (`gcu0`), `index` is efsmi's.",
    (*CARD, "index"),
)
CARD_TEMPERATURE: Final = GaugeSpec(
    "gcu_card_temperature_celsius",
    "Temperature of a card, as efsmi printed it in the last inventory; none where it prints none.",
    CARD,
)
CARD_POWER: Final = GaugeSpec(
    "gcu_card_power_watts",
    "Power that a card draws, as efsmi printed it in the last inventory; none where it prints "
    "none.",
    CARD,
)
CARD_MEMORY_USED: Final = GaugeSpec(
    "gcu_card_memory_used_bytes",
    "Memory of a card that is in use, as efsmi printed it in the last inventory; none where it "
    "prints none.",
    CARD,
)
CARD_PROBLEM: Final = GaugeSpec(
    "gcu_card_problem",
    "1 for each problem of a card. `problem` is the taint of its devices: `unhealthy`, "
    "`failing`, `held`, `foreign` or `changing`. `value` is the value of that taint.",
    ("pci_bus_id", "problem", "value"),
)
CARD_SIZE: Final = GaugeSpec(
    "gcu_card_size",
    "What a card has: slices in the mode `shared`, its size in the mode `drs`, 1 in the mode "
    "`whole`.",
    ("pci_bus_id", "mode"),
)
CARD_ALLOCATED: Final = GaugeSpec(
    "gcu_card_allocated",
    "What a prepared claim has of a card, in the unit of `gcu_card_size`; `profile` is that of an "
    "instance. With the device plugin the claim is empty, and a container's devices are the "
    "`holder`. Slices that an init container handed on count for both.",
    (*CARD, "mode", "profile", "claim_namespace", "claim", "holder"),
)
CARD_CONTAINER: Final = GaugeSpec(
    "gcu_card_container_info",
    "1 for each container that may use what `gcu_card_allocated` counts. Pod and container are "
    "empty where the kubelet names none: for init containers, and while it does not answer.",
    (*CARD, "mode", "profile", "namespace", "pod", "container", "claim"),
)
FOREIGN_PODS: Final = GaugeSpec(
    "gcu_agent_foreign_pods",
    "Pods of the node that have devices of another device plugin for GCUs, by the kubelet's last "
    "answer.",
)
LARGEST_REQUEST: Final = GaugeSpec(
    "gcu_node_largest_request",
    "The largest request for one card that still fits on the node: in slices, in size, or whether "
    "a card is free (`whole`). Cards with a problem do not count.",
    ("mode",),
)
DEVICES: Final = GaugeSpec(
    "gcu_agent_devices",
    "Devices that the node offers, one for each mode of a card, in use or free. A device with the "
    "taint `unhealthy` is unhealthy. With DRA as published, without DRA as they would be "
    "published.",
    ("mode", "health"),
)
DEVICE_TAINTS: Final = GaugeSpec(
    "gcu_agent_device_taints",
    "Their taints other than `allocated-by`. Without DRA the same keys and values are the cards' "
    "problems.",
    ("key", "value", "effect"),
)
CLAIMS: Final = GaugeSpec(
    "gcu_agent_claims",
    "Claims in the journal: `intent`, `prepared`, `unpreparing`, `released`. What an ended claim "
    "left on a card that failed is `unpreparing`. A claim is `released` between two allocations.",
    ("state",),
)
PREPARED_DEVICES: Final = GaugeSpec(
    "gcu_agent_prepared_devices",
    "Devices, shares and instances that prepared claims have, and containers without DRA.",
    ("mode",),
)
REQUEST_SECONDS: Final = HistogramSpec(
    "gcu_agent_request_duration_seconds",
    "Calls of the kubelet: `prepare`, `unprepare`, and `allocate` of the device plugin.",
    ("operation",),
    _CALL_SECONDS,
)
PREPARED_SECONDS: Final = HistogramSpec(
    "gcu_agent_prepared_duration_seconds",
    "From the allocation of a claim until it was prepared here for the first time, by the clocks "
    "of two machines, from whole seconds. It includes the time until its pod was bound.",
    buckets=_START_SECONDS,
)
REQUESTS_INFLIGHT: Final = GaugeSpec(
    "gcu_agent_requests_inflight",
    "Calls of the kubelet that are not answered yet.",
    ("operation",),
)
CLAIM_ERRORS: Final = CounterSpec(
    "gcu_agent_claim_errors",
    "Claims whose prepare or unprepare failed, by the class of the error.",
    ("operation", "error"),
)
ALLOCATE_ERRORS: Final = CounterSpec(
    "gcu_agent_allocate_errors",
    "Containers that got no devices of a resource (`enflame.com/…`), by the class of the error.",
    ("resource", "error"),
)
EFSMI_SECONDS: Final = HistogramSpec(
    "gcu_agent_efsmi_duration_seconds",
    "Calls of efsmi: `ok`, `failed`, `hung`, or `error` if it could not be run.",
    ("command", "outcome"),
    _TOOL_SECONDS,
)
JOURNAL_QUARANTINES: Final = CounterSpec(
    "gcu_agent_journal_quarantines", "Damaged journals that were set aside and rebuilt."
)
PUBLICATIONS: Final = CounterSpec(
    "gcu_agent_publications",
    "Attempts to update the ResourceSlices: `written`, `conflict`, `failed`.",
    ("outcome",),
)
