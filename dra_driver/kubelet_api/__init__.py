"""The kubelet's side of the agent: sockets, registration and the DRA service over gRPC.

The only package that imports grpc and protobuf. It knows nothing of cards: prepare and unprepare
go to a `ClaimHandler`.
"""
