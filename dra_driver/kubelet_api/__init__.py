"""The kubelet's side of the agent: sockets, registration and the DRA service over gRPC.

The only package that imports grpc. It knows no cards: prepare and unprepare go to a `ClaimHandler`,
and the calls for extended resources to a `DeviceHandler`.
"""
