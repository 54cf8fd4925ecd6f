"""gRPC services and their clients, from the descriptors in the generated messages.

A service is named by its file, such as `dra_v1_pb2.DESCRIPTOR`, and its name in that file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass


def add_service(server: grpc.Server, file: FileDescriptor, name: str, servicer: object) -> None:
    """Serve `servicer`, which has a method for each one of the service, called as in the API."""
    service = file.services_by_name[name]
    handlers = {
        method.name: _handler(method, getattr(servicer, method.name)) for method in service.methods
    }
    server.add_registered_method_handlers(service.full_name, handlers)


class Stub:
    """The service at the other end of `channel`: a method for each one of the API.

    A call is given the request and `timeout` in seconds, and gives the response, or an iterator
    of them if the method streams. It raises grpc.RpcError.
    """

    def __init__(self, channel: grpc.Channel, file: FileDescriptor, name: str) -> None:
        self._channel = channel
        self._service = file.services_by_name[name]

    def __getattr__(self, name: str) -> Any:
        method = self._service.methods_by_name[name]
        make = self._channel.unary_stream if method.server_streaming else self._channel.unary_unary
        return make(
            f"/{self._service.full_name}/{name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )


def _handler(
    method: MethodDescriptor, behavior: Callable[..., Any]
) -> grpc.RpcMethodHandler[Any, Any]:
    make = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        behavior,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )
