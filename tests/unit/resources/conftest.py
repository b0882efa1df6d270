"""A world of all built-in syncers."""

import pytest

from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.endpointslices import EndpointSliceSyncer
from syncer.resources.events import EventSyncer
from syncer.resources.ingresses import IngressSyncer
from syncer.resources.network_policies import NetworkPolicySyncer
from syncer.resources.nodes import NodeSyncer
from syncer.resources.pods.syncer import PodSyncer
from syncer.resources.pods.tokens import PodTokenSyncer
from syncer.resources.secrets import SecretSyncer
from syncer.resources.serviceaccounts import ServiceAccountSyncer
from syncer.resources.services import ServiceSyncer
from syncer.testing import World


@pytest.fixture
def world() -> World:
    return World(
        [
            ConfigMapSyncer,
            EndpointSliceSyncer,
            EventSyncer,
            IngressSyncer,
            NetworkPolicySyncer,
            NodeSyncer,
            PodSyncer,
            PodTokenSyncer,
            SecretSyncer,
            ServiceAccountSyncer,
            ServiceSyncer,
        ]
    )
