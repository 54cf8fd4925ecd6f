"""The generated code is what proto/ says, and proto/ is what kubelets speak."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

from dra_driver.kubelet_api.generated import (
    deviceplugin_v1beta1_pb2,
    dra_health_v1_pb2,
    dra_v1_pb2,
    pluginregistration_v1_pb2,
    podresources_v1_pb2,
)

TOP = Path(__file__).parents[3]
GENERATED = (Path("dra_driver/kubelet_api/generated"), Path("dra_driver/kube/generated"))

TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_MESSAGE: "message",
}


DRA_MESSAGES = {
    "Claim": [(1, "namespace", "string"), (2, "uid", "string"), (3, "name", "string")],
    "Device": [
        (1, "request_names", "repeated string"),
        (2, "pool_name", "string"),
        (3, "device_name", "string"),
        (4, "cdi_device_ids", "repeated string"),
        (5, "share_id", "optional string"),
    ],
    "NodePrepareResourcesRequest": [(1, "claims", "repeated Claim")],
    "NodePrepareResourcesResponse": [(1, "claims", "map<string, NodePrepareResourceResponse>")],
    "NodePrepareResourceResponse": [(1, "devices", "repeated Device"), (2, "error", "string")],
    "NodeUnprepareResourcesRequest": [(1, "claims", "repeated Claim")],
    "NodeUnprepareResourcesResponse": [(1, "claims", "map<string, NodeUnprepareResourceResponse>")],
    "NodeUnprepareResourceResponse": [(1, "error", "string")],
}


DRA = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
DRA_METHODS = {
    f"{DRA}/{method}": (f"{method}Request", f"{method}Response")
    for method in ("NodePrepareResources", "NodeUnprepareResources")
}
HEALTH_MESSAGES = {
    "NodeWatchResourcesRequest": [],
    "NodeWatchResourcesResponse": [(1, "devices", "repeated DeviceHealth")],
    "DeviceHealth": [
        (1, "device", "DeviceIdentifier"),
        (2, "health", "HealthStatus"),
        (3, "last_updated_time", "int64"),
        (4, "health_check_timeout_seconds", "int64"),
        (5, "message", "string"),
    ],
    "DeviceIdentifier": [(1, "pool_name", "string"), (2, "device_name", "string")],
}
HEALTH_METHODS = {
    "/v1.DRAResourceHealth/NodeWatchResources": (
        "NodeWatchResourcesRequest",
        "stream NodeWatchResourcesResponse",
    )
}
DEVICE_PLUGIN_MESSAGES = {
    "DevicePluginOptions": [
        (1, "pre_start_required", "bool"),
        (2, "get_preferred_allocation_available", "bool"),
    ],
    "RegisterRequest": [
        (1, "version", "string"),
        (2, "endpoint", "string"),
        (3, "resource_name", "string"),
        (4, "options", "DevicePluginOptions"),
    ],
    "Empty": [],
    "ListAndWatchResponse": [(1, "devices", "repeated Device")],
    "TopologyInfo": [(1, "nodes", "repeated NUMANode")],
    "NUMANode": [(1, "ID", "int64")],
    "Device": [(1, "ID", "string"), (2, "health", "string"), (3, "topology", "TopologyInfo")],
    "PreferredAllocationRequest": [
        (1, "container_requests", "repeated ContainerPreferredAllocationRequest")
    ],
    "ContainerPreferredAllocationRequest": [
        (1, "available_deviceIDs", "repeated string"),
        (2, "must_include_deviceIDs", "repeated string"),
        (3, "allocation_size", "int32"),
    ],
    "PreferredAllocationResponse": [
        (1, "container_responses", "repeated ContainerPreferredAllocationResponse")
    ],
    "ContainerPreferredAllocationResponse": [(1, "deviceIDs", "repeated string")],
    "AllocateRequest": [(1, "container_requests", "repeated ContainerAllocateRequest")],
    "ContainerAllocateRequest": [(1, "devices_ids", "repeated string")],
    "CDIDevice": [(1, "name", "string")],
    "AllocateResponse": [(1, "container_responses", "repeated ContainerAllocateResponse")],
    "ContainerAllocateResponse": [
        (1, "envs", "map<string, string>"),
        (3, "devices", "repeated DeviceSpec"),
        (5, "cdi_devices", "repeated CDIDevice"),
    ],
    "DeviceSpec": [
        (1, "container_path", "string"),
        (2, "host_path", "string"),
        (3, "permissions", "string"),
    ],
}
DEVICE_PLUGIN_METHODS = {
    "/v1beta1.Registration/Register": ("RegisterRequest", "Empty"),
    "/v1beta1.DevicePlugin/GetDevicePluginOptions": ("Empty", "DevicePluginOptions"),
    "/v1beta1.DevicePlugin/ListAndWatch": ("Empty", "stream ListAndWatchResponse"),
    "/v1beta1.DevicePlugin/GetPreferredAllocation": (
        "PreferredAllocationRequest",
        "PreferredAllocationResponse",
    ),
    "/v1beta1.DevicePlugin/Allocate": ("AllocateRequest", "AllocateResponse"),
}
POD_RESOURCES_MESSAGES = {
    "AllocatableResourcesRequest": [],
    "AllocatableResourcesResponse": [
        (1, "devices", "repeated ContainerDevices"),
        (2, "cpu_ids", "repeated int64"),
    ],
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [(1, "pod_resources", "repeated PodResources")],
    "PodResources": [
        (1, "name", "string"),
        (2, "namespace", "string"),
        (3, "containers", "repeated ContainerResources"),
    ],
    "ContainerResources": [
        (1, "name", "string"),
        (2, "devices", "repeated ContainerDevices"),
        (5, "dynamic_resources", "repeated DynamicResource"),
    ],
    "DynamicResource": [
        (2, "claim_name", "string"),
        (3, "claim_namespace", "string"),
        (4, "claim_resources", "repeated ClaimResource"),
    ],
    "ClaimResource": [(2, "driver_name", "string")],
    "ContainerDevices": [
        (1, "resource_name", "string"),
        (2, "device_ids", "repeated string"),
    ],
}


# Copied by hand from k8s.io/kubelet v0.36.3, pkg/apis/{pluginregistration/v1,dra/v1,
# dra-health/v1alpha1,deviceplugin/v1beta1,podresources/v1}, and from kubernetes 1.37 for
# dra-health/v1. The last two have fields beside these, which are not used.
PINNED = [
    pytest.param(
        pluginregistration_v1_pb2.DESCRIPTOR,
        {
            "InfoRequest": [],
            "PluginInfo": [
                (1, "type", "string"),
                (2, "name", "string"),
                (3, "endpoint", "string"),
                (4, "supported_versions", "repeated string"),
            ],
            "RegistrationStatus": [(1, "plugin_registered", "bool"), (2, "error", "string")],
            "RegistrationStatusResponse": [],
        },
        {
            "/pluginregistration.Registration/GetInfo": ("InfoRequest", "PluginInfo"),
            "/pluginregistration.Registration/NotifyRegistrationStatus": (
                "RegistrationStatus",
                "RegistrationStatusResponse",
            ),
        },
        id="registration",
    ),
    pytest.param(dra_v1_pb2.DESCRIPTOR, DRA_MESSAGES, DRA_METHODS, id="dra-v1"),
    pytest.param(dra_health_v1_pb2.DESCRIPTOR, HEALTH_MESSAGES, HEALTH_METHODS, id="health-v1"),
    pytest.param(
        deviceplugin_v1beta1_pb2.DESCRIPTOR,
        DEVICE_PLUGIN_MESSAGES,
        DEVICE_PLUGIN_METHODS,
        id="device-plugin",
    ),
    pytest.param(
        podresources_v1_pb2.DESCRIPTOR,
        POD_RESOURCES_MESSAGES,
        {
            "/v1.PodResourcesLister/List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
            "/v1.PodResourcesLister/GetAllocatableResources": (
                "AllocatableResourcesRequest",
                "AllocatableResourcesResponse",
            ),
        },
        id="pod-resources",
    ),
]


@pytest.mark.parametrize(("file", "messages", "methods"), PINNED)
def test_the_wire_format_is_the_kubelets(
    file: FileDescriptor,
    messages: dict[str, list[tuple[int, str, str]]],
    methods: dict[str, tuple[str, str]],
) -> None:
    found = {name: fields_of(message) for name, message in file.message_types_by_name.items()}
    assert found == messages
    assert {
        f"/{service.full_name}/{method.name}": (
            streamed(method.input_type.name, method.client_streaming),
            streamed(method.output_type.name, method.server_streaming),
        )
        for service in file.services_by_name.values()
        for method in service.methods
    } == methods


def test_the_states_have_the_kubelets_numbers() -> None:
    [states] = dra_health_v1_pb2.DESCRIPTOR.enum_types_by_name.values()
    numbers = {value.name: value.number for value in states.values}
    assert (states.name, numbers) == ("HealthStatus", {"UNKNOWN": 0, "HEALTHY": 1, "UNHEALTHY": 2})


def streamed(message: str, stream: bool) -> str:
    return f"stream {message}" if stream else message


def fields_of(message: Descriptor) -> list[tuple[int, str, str]]:
    return [(field.number, field.name, type_of(field)) for field in message.fields]


def type_of(field: FieldDescriptor) -> str:
    nested = field.message_type
    if nested is not None and nested.GetOptions().map_entry:
        key, value = nested.fields
        return f"map<{type_of(key)}, {type_of(value)}>"
    named = nested if nested is not None else field.enum_type
    name = named.name if named is not None else TYPES[field.type]
    if field.is_repeated:
        return f"repeated {name}"
    explicit = field.containing_oneof is not None
    return f"optional {name}" if explicit else name


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    subprocess.run(
        [TOP / "scripts/generate-proto", tmp_path],
        check=True,
        env={**os.environ, "PYTHON": sys.executable},
    )
    again, committed = (
        {
            folder / path.name: path.read_bytes()
            for folder in GENERATED
            for path in (root / folder).glob("*_pb2*")
        }
        for root in (tmp_path, TOP)
    )
    assert again == committed
    assert len(again) == 12
