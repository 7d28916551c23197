"""A made-up fleet of its own: engines are compared on every kind of oddity that reports can tell."""

from __future__ import annotations

import pytest

from tests.agent.fleet.questions.conftest import made


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    place = tmp_path_factory.mktemp("engines")
    made(place, 150, 8, {"gb200-ib": 2, "l40s-roce": 1})
    return place / "dataset"
