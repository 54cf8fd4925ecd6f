"""What `make bench-cluster` counts of an API server's metrics."""

from __future__ import annotations

from bench.programs import writes


def line(verb: str, resource: str, subresource: str, count: int, code: int = 200) -> str:
    labels = (
        f'code="{code}",component="apiserver",dry_run="",group="",resource="{resource}",'
        f'scope="resource",subresource="{subresource}",verb="{verb}",version="v1"'
    )
    return f"apiserver_request_total{{{labels}}} {count}"


def test_writes_are_counted_by_verb_and_resource() -> None:
    metrics = [
        "# TYPE apiserver_request_total counter",
        line("POST", "pods", "binding", 7, 201),
        line("PUT", "resourceclaims", "status", 1),
        line("PUT", "resourceclaims", "status", 2, 409),
        line("PATCH", "pods", "", 4),
        'apiserver_request_duration_seconds_count{verb="PATCH",resource="pods"} 9',
    ]
    assert writes("\n".join(metrics)) == {
        "POST pods/binding": 7,
        "PUT resourceclaims/status": 3,
        "PATCH pods": 4,
    }


def test_reading_and_what_is_written_without_pods_are_not_counted() -> None:
    metrics = [
        line("LIST", "pods", "", 3),
        line("WATCH", "pods", "", 3),
        line("PUT", "leases", "", 3),
    ]
    assert not writes("\n".join(metrics))
