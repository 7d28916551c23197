"""Colours of the map, as people see them who lack one kind of cone."""

from __future__ import annotations

import re
from pkgutil import get_data

import pytest

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LOOKS = ("ok", "warning", "error", "critical")  # unknown and stale are outlines
LEAST = 20.0  # CIE76; 2.3 is what is just seen side by side


def lab(colour: str, sight: str) -> tuple[float, float, float]:
    """CIELAB (D65) of "#rrggbb" as it is seen."""
    linear = [
        ((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92
        for c in (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    ]
    r, g, b = (min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear, strict=True)))) for row in SIGHT[sight])
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(a: str, b: str, sight: str) -> float:
    """How far apart two colours look."""
    return float(sum((p - q) ** 2 for p, q in zip(lab(a, sight), lab(b, sight), strict=True)) ** 0.5)


def tones(name: str) -> tuple[str, str]:
    """Light and dark of a variable of the page's style."""
    style = (get_data("agent.fleet.page", "page.css") or b"").decode()
    found = re.search(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", style)
    assert found is not None, name
    return found[1], found[2]


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_severities_are_told_apart(theme: int, sight: str) -> None:
    """By everybody, in both themes."""
    colours = {look: tones(f"m-{look}")[theme] for look in LOOKS}
    near = {(a, b): apart(colours[a], colours[b], sight) for a in LOOKS for b in LOOKS if a < b}

    assert LEAST < min(near.values()), near


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_a_scale_rises_in_lightness(theme: int, sight: str) -> None:
    """So that its order is seen without colours."""
    steps = [lab(tones(f"c{at}")[theme], sight)[0] for at in range(7)]

    assert steps == sorted(steps, reverse=bool(theme))
