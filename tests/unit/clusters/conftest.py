"""The event loops that every transport test runs on."""

import pytest
from transport_kinds import KINDS, Kind


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]
