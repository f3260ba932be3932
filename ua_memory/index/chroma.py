"""Chroma's package, imported without what only its telemetry needs, and how it fails.

chromadb 1.5.9 imports the gRPC exporter of OpenTelemetry, which it uses where an endpoint is configured: 150
modules, 12 MB that a resting daemon keeps, and a tenth of a second. Ours are never sent anywhere.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

EXPORTER = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"


class VectorsUnavailable(Exception):
    """Chroma cannot be used now; the message says why. Search goes on by words."""


class VectorsElsewhere(VectorsUnavailable):
    """Another process has them open."""


class VectorsBroken(VectorsUnavailable):
    """What lies on disk is damaged: drop it and build it again."""


def imported() -> tuple[Any, Any]:
    """`chromadb`, and settings for it under which nothing is reported. ImportError where it is missing."""
    if "chromadb" in sys.modules or EXPORTER in sys.modules:
        return _both()
    stand_in = ModuleType(EXPORTER)
    stand_in.OTLPSpanExporter = None  # type: ignore[attr-defined]
    sys.modules[EXPORTER] = stand_in
    try:
        return _both()
    finally:
        del sys.modules[EXPORTER]  # whoever wants the exporter itself gets it


def _both() -> tuple[Any, Any]:
    import chromadb
    from chromadb.config import Settings

    return chromadb, Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")
