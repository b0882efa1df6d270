"""Routes, Gateways and GatewayClasses cross as they should, without a cluster."""

import pytest
from vsyncer_gateway_api.gateway_classes import GatewayClassSyncer
from vsyncer_gateway_api.gateways import GatewaySyncer
from vsyncer_gateway_api.routes import GRPCRouteSyncer, HTTPRouteSyncer, TLSRouteSyncer

from syncer.testing.cases import Case, load

SYNCERS = [
    HTTPRouteSyncer,
    GRPCRouteSyncer,
    TLSRouteSyncer,
    GatewaySyncer,
    GatewayClassSyncer,
]


@pytest.mark.parametrize("case", load("tests/cases"), ids=str)
def test_case(case: Case) -> None:
    case.check(SYNCERS)
