"""The stand-in NVML library, built once for all tests of the backends."""

from __future__ import annotations

from tests.standins.conftest import nvml_library

__all__ = ["nvml_library"]
