"""The controller's metrics. docs/user/monitoring.md lists them (`make docs`)."""

from __future__ import annotations

from typing import Final

from dra_driver.telemetry.metric_spec import CounterSpec, GaugeSpec, HistogramSpec

_STEP_SECONDS: Final = (0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_WAIT_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0, 600.0, 3600.0, 36000.0)
_CALL_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)

LEADING: Final = GaugeSpec("gcu_controller_leading", "1 while this replica leads, else 0.")
ALLOCATIONS: Final = CounterSpec("gcu_controller_allocations", "Claims allocated.")
RELEASES: Final = CounterSpec("gcu_controller_releases", "Allocations released.")
UNSATISFIED: Final = CounterSpec(
    "gcu_controller_unsatisfied", "Decisions that found no devices for a waiting pod."
)
PREDICTIONS_TRIED: Final = CounterSpec(
    "gcu_controller_predictions_tried",
    "Nodes that were tried although kube-scheduler was expected to refuse them, as it was expected "
    "to refuse all others, by whether it did: `true`, `false`.",
    ("right",),
)
ALLOCATION_SECONDS: Final = HistogramSpec(
    "gcu_controller_allocation_duration_seconds",
    "From the creation of a pod until its claims were allocated.",
    buckets=_WAIT_SECONDS,
)
RUNNING_SECONDS: Final = HistogramSpec(
    "gcu_controller_running_duration_seconds",
    "From the creation of a pod with devices of this driver until the API server had it as "
    "running. It includes images and init containers.",
    buckets=_WAIT_SECONDS,
)
WAITING_PODS: Final = GaugeSpec("gcu_controller_waiting_pods", "Pods that wait for devices.")
LONGEST_WAIT: Final = GaugeSpec(
    "gcu_controller_longest_wait_seconds",
    "For how long the pod has waited that has waited longest, since this replica leads.",
)
NOMINATED_PODS: Final = GaugeSpec(
    "gcu_controller_nominated_pods",
    "Pods whose node was named, and that kube-scheduler has neither bound nor refused, for ten "
    "minutes at most.",
)
NOMINATED_PODS_BOUND: Final = CounterSpec(
    "gcu_controller_nominated_pods_bound",
    "Pods that kube-scheduler bound after their node was named, by whether it is that node: "
    "`true`, `false`.",
    ("followed",),
)
WAITING_GROUPS: Final = GaugeSpec(
    "gcu_controller_waiting_groups",
    "Groups of pods that wait, by reason. `incomplete`: too few pods, or a claim is missing. "
    "`devices`: not enough devices. `refused`: a pod may not have what it asks for.",
    ("reason",),
)
GROUP_SECONDS: Final = HistogramSpec(
    "gcu_controller_group_bound_seconds",
    "From when a group of pods was complete until its last pod was bound.",
    buckets=_WAIT_SECONDS,
)
NOMINATIONS_REFUSED: Final = CounterSpec(
    "gcu_controller_nominations_refused",
    "Names that the API server refused; the pod's gate was lifted without one.",
)
NAMES_STOPPED: Final = GaugeSpec(
    "gcu_controller_names_stopped",
    "1 while nodes are proposed by preferred affinity, because kube-scheduler followed fewer than "
    "half of the last 200 names.",
)
ARRIVED_PODS: Final = CounterSpec(
    "gcu_controller_arrived_pods",
    "New pods with a claim for a device of this driver, by whether they came with the scheduling "
    "gate: `true`, `false`. Pods that the webhook leaves alone do not count.",
    ("gated",),
)
UNDECIDED_GATES: Final = GaugeSpec(
    "gcu_controller_undecided_gates",
    "Pods that the scheduling gate has held back for more than a minute, and about which no "
    "controller has decided. Pods that wait for room do not count.",
)
QUEUE_ENTRIES: Final = GaugeSpec(
    "gcu_controller_queue_entries",
    "Keys in the scheduling queue, by its parts: `active`, `backoff`, `unschedulable`.",
    ("part",),
)
DECISION_WAIT_SECONDS: Final = HistogramSpec(
    "gcu_controller_decision_wait_seconds",
    "From when a pod was due for a decision until that was made.",
    buckets=_STEP_SECONDS,
)
STEP_SECONDS: Final = HistogramSpec(
    "gcu_controller_step_seconds",
    "How long a step of the deciding thread took.",
    ("kind",),
    _STEP_SECONDS,
)
STOPPED_DECISIONS: Final = CounterSpec(
    "gcu_controller_stopped_decisions",
    "Decisions that were stopped because they took too long, by what they were at.",
    ("at",),
)
ERRORS: Final = CounterSpec("gcu_controller_errors", "Calls to the API server that failed.")
FAULTS: Final = CounterSpec(
    "gcu_controller_faults", "Events and steps that failed by a fault of the controller."
)
FAULTY_OBJECTS: Final = GaugeSpec(
    "gcu_controller_faulty_objects",
    "Objects on which the controller failed, and which it does not handle for now.",
)
FOREIGN_ALLOCATIONS: Final = GaugeSpec(
    "gcu_controller_foreign_allocations",
    "Claims that another allocator gave devices of this driver.",
)
CONFLICTING_ALLOCATIONS: Final = GaugeSpec(
    "gcu_controller_conflicting_allocations", "Claims that have devices that are allocated twice."
)
NODES_WITHOUT_AGENT: Final = GaugeSpec(
    "gcu_controller_nodes_without_agent",
    "1 for each node for which the DaemonSet has made a pod, and where no agent runs, or whose "
    "kubelet has gone silent.",
    ("node",),
)
PODS_WITHOUT_CLAIM: Final = GaugeSpec(
    "gcu_controller_pods_without_claim",
    "Pods on nodes with an agent that have neither a claim nor limits, and whose spec gives them "
    "cards. It has the variable `ENFLAME_VISIBLE_DEVICES`, the RuntimeClass of the agents, or a "
    "hostPath `/dev/gcu…`. `node` and `namespace` are those of the pods.",
    ("node", "namespace"),
)
WEBHOOK_REVIEWS: Final = CounterSpec(
    "gcu_webhook_reviews",
    "Calls of API servers by path and result: `patched`, `unchanged`, `denied`, `failed`.",
    ("path", "result"),
)
WEBHOOK_CERTIFICATE_END: Final = GaugeSpec(
    "gcu_webhook_certificate_expiration_timestamp_seconds",
    "When the certificate of the admission webhook expires.",
    ("certificate",),
)
EXTENDER_CALL_SECONDS: Final = HistogramSpec(
    "gcu_extender_call_seconds",
    "Without DRA: how long kube-scheduler's calls took.",
    ("verb",),
    _CALL_SECONDS,
)
EXTENDER_CALLS: Final = CounterSpec(
    "gcu_extender_calls",
    "Without DRA: calls by their outcome: `served` (also when no node has room), `refused`, "
    "`failed`. Refused: this replica does not lead or has not read the cluster yet, or the node of "
    "a bind has no room any more.",
    ("verb", "outcome"),
)
EXTENDER_REFUSED_BY_NODE: Final = CounterSpec(
    "gcu_extender_refused_by_node",
    "Without DRA: pods that their node did not admit (UnexpectedAdmissionError).",
)
EXTENDER_WAITING_PODS: Final = GaugeSpec(
    "gcu_extender_waiting_pods", "Without DRA: pods that no node could take."
)
EXTENDER_BYPASSED_PODS: Final = GaugeSpec(
    "gcu_extender_bypassed_pods",
    "Without DRA: pods with limits that are bound, and that the extender did not place.",
)
EXTENDER_CERTIFICATE_END: Final = GaugeSpec(
    "gcu_extender_certificate_expiration_timestamp_seconds",
    "When the certificates of extender (`server`), kube-scheduler (`client`) and CA (`authority`) "
    "expire.",
    ("certificate",),
)
