"""System services that a GPU node needs: fabric manager, persistenced, IMEX, and others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Service:
    """One system service of interest."""

    name: str  # "nvidia-fabricmanager"
    state: str  # active | inactive | failed | not_installed | unknown
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """Services that a GPU node needs or may need."""

    services: tuple[Service, ...]
