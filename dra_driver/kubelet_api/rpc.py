"""gRPC services and their clients, from the descriptors in the generated messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass


class RpcService(msgspec.Struct, frozen=True):
    """A service as `file` describes it, such as `dra_v1_pb2.DESCRIPTOR`, by its `name` there.

    `package` takes the place of the file's: for another version with the same messages.
    """

    file: FileDescriptor
    name: str
    package: str = ""

    @property
    def full_name(self) -> str:
        """The name in paths."""
        return f"{self.package or self.file.package}.{self.name}"

    @property
    def methods(self) -> dict[str, MethodDescriptor]:
        """By name."""
        return dict(self.file.services_by_name[self.name].methods_by_name)

    def add_to(self, server: grpc.Server, servicer: object) -> None:
        """Serve `servicer`, which has a method for each one of the service, called as in the
        API."""
        handlers = {
            name: _handler(method, getattr(servicer, name)) for name, method in self.methods.items()
        }
        server.add_registered_method_handlers(self.full_name, handlers)


class Stub:
    """The service at the other end of `channel`, with the methods of the API.

    A call is given the request and `timeout` in seconds, and gives the response, or an iterator
    of them if the method streams. It raises grpc.RpcError.
    """

    def __init__(self, channel: grpc.Channel, service: RpcService) -> None:
        self._channel = channel
        self._service = service

    def __getattr__(self, name: str) -> Any:
        method = self._service.methods.get(name)
        if method is None:
            raise AttributeError(name)
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


@contextmanager
def connected(socket: Path, service: RpcService, *options: tuple[str, int]) -> Iterator[Stub]:
    """A client of what listens on the unix socket, by a new connection: an old one leads to the
    kubelet before its restart, and outlives the socket's file."""
    fresh = ("grpc.use_local_subchannel_pool", 1)
    with grpc.insecure_channel(f"unix:{socket}", options=(fresh, *options)) as channel:
        yield Stub(channel, service)


def reason(error: grpc.RpcError) -> str:
    """The code and the words of a call that failed."""
    return f"{error.code().name}, {error.details()}"
