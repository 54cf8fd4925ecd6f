"""The controller's settings: file < environment (``GCU_…``) < flags."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator, model_validator

from controller.filter.predictions import PLUGINS
from controller.leaderelection.leader import LONGEST
from dra_driver.config.loader import Settings, listed_names
from dra_driver.model.claims.packing import Packing
from dra_driver.telemetry.logs import LogSettings

*_OTHERS, _LAST = [f"{packing.preferred} ({packing})" for packing in Packing]
_POLICIES: Final = f"{', '.join(_OTHERS)}, or {_LAST}"


class ControllerSettings(Settings, LogSettings):
    """The settings of `gcu-dra-controller`."""

    mode: Literal["auto", "dra", "device-plugin"] = Field(
        "auto",
        description="What is served: claims (dra), or pods with limits, as a scheduler extender "
        "(device-plugin). auto: claims where the server has the DRA that is needed.",
    )
    extender_host: str = Field(
        "",
        pattern=r"^[0-9a-fA-F.:]*$",
        description="IP address at which the scheduler extender serves; all without it.",
    )
    extender_port: int = Field(
        8443, ge=0, le=65535, description="HTTPS port of the scheduler extender; 0 takes any."
    )
    extender_certificate: Path | None = Field(
        None, description="The extender's certificate, a PEM file; read anew when it changes."
    )
    extender_key: Path | None = Field(None, description="The certificate's key, a PEM file.")
    extender_client_authority: Path | None = Field(
        None,
        description="The authority of kube-scheduler's client certificate, a PEM file: whoever "
        "shows one that it signed may bind pods.",
    )
    extender_client_subject: str = Field(
        "",
        description="Common name that kube-scheduler's client certificate must have; any without "
        "it.",
    )
    webhook_certificate: Path | None = Field(
        None,
        description="Certificate of the admission webhook, a PEM file; read anew when it changes. "
        "Without it there is no webhook.",
    )
    webhook_key: Path | None = Field(None, description="The webhook certificate's key, a PEM file.")
    webhook_port: int = Field(
        8444, ge=0, le=65535, description="HTTPS port of the admission webhook; 0 takes any."
    )
    webhook_drain: float = Field(
        3.0,
        ge=0,
        le=20,
        description="Seconds that the webhook serves after SIGTERM: until then API servers may "
        "still call this pod.",
    )
    webhook_device_classes: str = Field(
        "",
        description="Comma-separated names of further DeviceClasses whose requests' amounts the "
        "webhook moves into opaque configuration.",
    )
    webhook_scheduler_names: str = Field(
        "",
        description="Comma-separated names of schedulers from which the webhook takes new pods.",
    )
    webhook_scheduler_name: str = Field(
        "default-scheduler", description="Name of the scheduler that the webhook gives them to."
    )
    webhook_drop_node_selector: bool = Field(
        True,
        description="Whether the webhook removes the node selector enflame.com/gcushare=true "
        "from pods whose limits become a claim.",
    )
    slice_form: Literal["visible", "hidden"] = Field(
        "visible",
        description="Form of the ResourceSlices that the agents publish. hidden: those of nodes "
        "without an agent are deleted.",
    )
    allocator: Literal["controller", "scheduler"] = Field(
        "controller",
        description="What allocates claims: the driver's controller, or kube-scheduler (1.36.3 or "
        "newer).",
    )
    nomination: bool = Field(
        True,
        description="Whether the controller names the node of a pod before it lifts our scheduling "
        "gate, where kube-scheduler allocates. Otherwise gates are lifted at once.",
    )
    nomination_limit: int = Field(
        500,
        ge=1,
        description="Most pods whose node is named at a time, until they are bound or refused. "
        "A pod that no scheduler tries counts for ten minutes.",
    )
    nomination_waiting: int = Field(
        20,
        ge=0,
        description="Most waiting pods for which there is no room, and that kube-scheduler sees "
        "nevertheless: autoscalers and preemption act on pods that it refuses. One namespace gets "
        "at most half of these places.",
    )
    nomination_group_labels: str = Field(
        "",
        description="Comma-separated labels of nodes, the nearest first, such as those of racks. "
        "Of as few nodes, a group of pods is named for nodes that share their values.",
    )
    ignored_claim_fields: str = Field(
        "",
        description="Comma-separated names of fields of claims that are ignored where the "
        "allocator does not support them; claims with any other such field are refused.",
    )
    legacy_resources_config: str = Field(
        "",
        pattern=r"^[a-z0-9.-]*$",
        description="ServiceAccount, in the Lease's namespace, that says whether limits of new "
        "pods become claims. The leader decides by what nodes offer, and the webhook follows. "
        "Without it limits always become claims.",
    )
    legacy_resources_delay: float = Field(
        60.0,
        ge=0,
        description="Seconds without another device plugin's resources after which limits of new "
        "pods become claims again.",
    )
    agent_labels: str = Field(
        "",
        description="Labels, as kubectl takes them, that give a node an agent; an event names them "
        "when no node has one. Without it the event refers to the affinity in the chart's values.",
    )
    http_port: int = Field(
        8080,
        ge=0,
        le=65535,
        description="Port of /healthz, /readyz, /startz and /metrics; 0 takes any.",
    )
    pod_name: str = Field(
        "", description="Name by which this replica holds the lease; the host's name without it."
    )
    lease_namespace: str = Field(
        "default", description="Namespace of the Lease; the Helm chart sets the pod's own."
    )
    lease_name: str = Field("gcu-dra-controller", description="Name of the Lease.")
    lease_duration: float = Field(
        15.0,
        gt=0,
        le=LONGEST,
        description="Seconds after which another replica takes an unrenewed lease.",
    )
    lease_renew_deadline: float = Field(
        10.0, gt=0, description="Seconds after a renewal in which the leader still writes."
    )
    lease_retry: float = Field(2.0, gt=0, description="Seconds between two renewals.")
    pack_nodes: Packing = Field(
        Packing.BINPACK,
        description=f"Which node is preferred: {_POLICIES}.",
    )
    pack_cards: Packing = Field(
        Packing.BINPACK,
        description=f"Which card of a node is preferred: {_POLICIES}.",
    )
    quiet_time: float = Field(
        5.0,
        ge=0,
        description="Seconds for which a claim is left alone after its allocation was cleared, "
        "unless kube-scheduler is known to have seen that.",
    )
    scheduling_patience: float = Field(
        30.0,
        gt=0,
        description="Seconds that kube-scheduler has to bind a pod whose claims are allocated.",
    )
    unconsidered_plugins: str = Field(
        "",
        description="Comma-separated names of filters of kube-scheduler that are not predicted: "
        f"{', '.join(PLUGINS)}.",
    )
    scheduler_names: str = Field(
        "",
        description="Comma-separated names of the schedulers whose pods get devices; all without "
        "it.",
    )
    node_retry: float = Field(
        30.0,
        gt=0,
        description="Seconds until a node that kube-scheduler refused is tried again; doubles "
        "each time.",
    )
    node_retry_longest: float = Field(
        600.0, gt=0, description="Most seconds until a refused node is tried again."
    )

    template_retention: float = Field(
        600.0,
        ge=0,
        description="Seconds for which a claim template made for limits is kept after the last pod "
        "that names it has ended.",
    )
    fairness_patience: float = Field(
        300.0,
        gt=0,
        description="Seconds after which a node is reserved for the first pod in the queue.",
    )
    writes_in_flight: int = Field(
        32, ge=1, le=64, description="Most writes to the API server at a time."
    )

    @property
    def names_nodes(self) -> bool:
        """Whether kube-scheduler allocates, and the controller names nodes."""
        return self.allocator == "scheduler" and self.nomination

    @property
    def group_labels(self) -> tuple[str, ...]:
        """The names in `nomination_group_labels`, in order."""
        return listed_names(self.nomination_group_labels)

    @property
    def ignored_fields(self) -> frozenset[str]:
        """The names in `ignored_claim_fields`."""
        return frozenset(listed_names(self.ignored_claim_fields))

    @property
    def served_schedulers(self) -> frozenset[str]:
        """The names in `scheduler_names`."""
        return frozenset(listed_names(self.scheduler_names))

    @property
    def plugins_left_out(self) -> frozenset[str]:
        """The names in `unconsidered_plugins`."""
        return frozenset(listed_names(self.unconsidered_plugins))

    @field_validator("unconsidered_plugins")
    @classmethod
    def _plugins_are_known(cls, listed: str) -> str:
        if unknown := {*listed_names(listed)} - {*PLUGINS}:
            raise ValueError(f"no filter that is predicted: {', '.join(sorted(unknown))}")
        return listed

    @model_validator(mode="after")
    def _lease_times_are_in_order(self) -> ControllerSettings:
        if not self.lease_retry < self.lease_renew_deadline < self.lease_duration:
            raise ValueError("lease_retry < lease_renew_deadline < lease_duration must hold")
        return self
