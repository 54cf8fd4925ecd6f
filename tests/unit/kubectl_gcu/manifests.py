"""Manifests that `kubectl gcu plan` reads."""

from __future__ import annotations

from typing import Any

from dra_driver.model.claims.claim import Object
from tests.unit.controller.allocator.build import request

TWO = request(cls="shared-gcu.enflame.com", capacity={"slices": "2"})


def template(name: str, wanted: Object) -> Object:
    spec = {"devices": {"requests": [wanted]}}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"namespace": "default", "name": name},
        "spec": {"spec": spec},
    }


def spec(**names: str) -> Object:
    """A pod with a claim `gcu`: of a template, or of that name."""
    return {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gcu", **names}]}


def limited(**limits: str) -> Object:
    return {"containers": [{"name": "main", "resources": {"limits": limits}}]}


def single(of: Object) -> Object:
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": of}


def workload(kind: str, name: str, of: Object, **more: Any) -> Object:
    return {"kind": kind, "metadata": {"name": name}, "spec": {"template": {"spec": of}, **more}}
