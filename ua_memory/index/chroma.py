"""Chroma's package, imported without what it never needs here, and how it fails.

chromadb 1.5.9 imports the gRPC exporter of OpenTelemetry, which it uses where an endpoint is configured: 150
modules, 12 MB that a resting daemon keeps, and a tenth of a second. Ours are never sent anywhere. It has
`overrides` read the byte code of its modules to compare the signatures of its own classes, and httpx its
command line (click, rich): a quarter of a second of processor time together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

EXPORTER = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"
CHECKER = "overrides"
COMMAND = "httpx._main"
"""httpx goes on without it, as where click is not installed."""


class VectorsUnavailable(Exception):
    """Chroma cannot be used now; the message says why. Search goes on by words."""


class VectorsElsewhere(VectorsUnavailable):
    """Another process has them open."""


class VectorsBroken(VectorsUnavailable):
    """What lies on disk is damaged: drop it and build it again."""


def imported() -> tuple[Any, Any]:
    """`chromadb`, and settings for it under which nothing is reported. ImportError where it is missing."""
    if "chromadb" in sys.modules:
        return _both()
    absent = {name: part for name, part in _stand_ins().items() if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]
    try:
        return _both()
    finally:
        for name in absent:
            del sys.modules[name]  # whoever wants the module itself gets it


def _stand_ins() -> dict[str, ModuleType | None]:
    exporter, checker = ModuleType(EXPORTER), ModuleType(CHECKER)
    exporter.OTLPSpanExporter = None  # type: ignore[attr-defined]
    checker.EnforceOverrides = object  # type: ignore[attr-defined]
    checker.override = checker.overrides = _as_it_is  # type: ignore[attr-defined]
    return {EXPORTER: exporter, CHECKER: checker, COMMAND: None}


def _as_it_is(method: Callable[..., Any]) -> Callable[..., Any]:
    return method


def _both() -> tuple[Any, Any]:
    import chromadb
    from chromadb.config import Settings

    return chromadb, Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")
