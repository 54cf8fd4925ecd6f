"""The settings of ``gcu-dra-agent``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from dra_driver.agent.lifecycle.serving_mode import ModeSetting
from dra_driver.agent.slices.slices import SliceForm
from dra_driver.config.loader import Settings, listed_names
from dra_driver.model.card import UNHEALTHY_VALUES
from dra_driver.model.names import DRIVER
from dra_driver.telemetry.logs import LogSettings
from dra_driver.util.paths import AbsolutePath


def _reasons(text: str) -> str:
    unknown = sorted({*listed_names(text)} - {*UNHEALTHY_VALUES})
    if unknown:
        known = ", ".join(UNHEALTHY_VALUES)
        raise ValueError(f"{', '.join(unknown)} is no reason of a taint; they are {known}")
    return text


# A DNS subdomain (k8s.io/apimachinery, NameIsDNSSubdomain); it goes into selectors and paths.
_NODE_NAME: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class AgentSettings(Settings, LogSettings):
    """Values only; `dra_driver.agent.agent` builds the parts with effects from them."""

    node_name: str = Field(
        pattern=_NODE_NAME, max_length=253, description="Name of this Node object."
    )
    mode: ModeSetting = Field(
        default="auto",
        description="How pods get GCUs: dra (ResourceClaims), device-plugin (extended resources), "
        "or auto, by what server and kubelet offer.",
    )
    slice_form: SliceForm = Field(
        default=SliceForm.VISIBLE,
        description="What keeps kube-scheduler from allocating: visible (taints; Kubernetes 1.36 "
        "or newer), or hidden (ResourceSlices that are offered to no node).",
    )
    allocator: Literal["controller", "scheduler"] = Field(
        default="controller",
        description="What allocates claims: the driver's controller, or kube-scheduler (1.36.3 or "
        "newer).",
    )
    lease_namespace: str = Field(
        default="default", description="Namespace of the Lease by which the controller is elected."
    )
    lease_name: str = Field(
        default="gcu-dra-controller",
        description="Name of that Lease; an annotation of it says who allocates.",
    )
    host_root: AbsolutePath = Field(
        default=Path("/"),
        description="Folder with the host's sys/ and dev/, at the same path in the pod and on "
        "the node.",
    )
    efsmi_path: str = Field(
        default="efsmi", min_length=1, description="The vendor's tool: a path, or a name on PATH."
    )
    efsmi_library: AbsolutePath | None = Field(
        default=None,
        description="The vendor's libefml.so, if efsmi does not find it by itself; a link is "
        "resolved at each call.",
    )
    efsmi_timeout: float = Field(
        default=20.0, gt=0, le=300, description="Time limit of one call of efsmi, in seconds."
    )
    kubelet_root: AbsolutePath = Field(
        default=Path("/var/lib/kubelet"), description="The kubelet's root directory."
    )
    cdi_dir: AbsolutePath = Field(
        default=Path("/var/run/cdi"), description="Where the container runtime reads CDI specs."
    )
    state_dir: AbsolutePath | None = Field(
        default=None,
        description=f"Where the journal lies; by default plugins/{DRIVER} below the kubelet root.",
    )
    injection: Literal["cdi", "runtime"] = Field(
        default="cdi",
        description="What adds device nodes to containers: cdi (this driver), or runtime (the "
        "vendor's container runtime, which needs the variables only).",
    )
    card_rules: Path | None = Field(
        default=None, description="JSON file with the configuration of the cards."
    )
    presence_interval: float = Field(
        default=5.0, gt=0, description="Seconds between scans of the PCI bus."
    )
    inventory_interval: float = Field(
        default=60.0, gt=0, description="Seconds between full queries with efsmi."
    )
    reconcile_interval: float = Field(
        default=60.0,
        gt=0,
        description="Seconds between comparisons of prepared claims with the state of the cards.",
    )
    release_interval: float = Field(
        default=10.0,
        gt=0,
        description="Seconds between checks for ended containers, without DRA.",
    )
    count_cards: bool = Field(
        default=False,
        description="Have the kubelet count the node's cards as enflame.com/gcu-count, "
        "with DRA and without.",
    )
    node_labels: bool = Field(
        default=False,
        description="Label the Node with model, count and memory of its cards, and the version of "
        "the kernel driver.",
    )
    error_limit: int | None = Field(
        default=None,
        ge=0,
        description="Taint a card with more error records than this (`efsmi -q`, Total Error "
        "Count); without a number there are only events when they grow.",
    )
    evict_on: Annotated[str, AfterValidator(_reasons)] = Field(
        default="",
        description="Reasons, with commas between them, for which pods must leave an unhealthy "
        f"card (effect NoExecute): {', '.join(UNHEALTHY_VALUES)}.",
    )
    registration_timeout: float = Field(
        default=60.0,
        gt=0,
        description="Seconds to wait for the kubelet's call before reporting that it does not "
        "come.",
    )
    pod_uid: str = Field(
        default="",
        description="UID of this pod; names the sockets, so that two agents can run side by side "
        "during an update (kubelet 1.33 or newer).",
    )
    pod_name: str = Field(default="", description="Name of this pod, for its events.")
    probe_port: int = Field(
        default=8080, ge=0, le=65535, description="Port of /healthz, /readyz, /startz and /metrics."
    )

    @model_validator(mode="after")
    def _kube_scheduler_sees_slices(self) -> AgentSettings:
        if self.allocator == "scheduler" and self.slice_form is SliceForm.HIDDEN:
            raise ValueError("allocator=scheduler needs slice_form=visible")
        return self

    @property
    def evicting(self) -> frozenset[str]:
        """The reasons in `evict_on`."""
        return frozenset(listed_names(self.evict_on))

    @property
    def state_directory(self) -> Path:
        return self.state_dir or self.kubelet_root / "plugins" / DRIVER
