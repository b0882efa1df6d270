"""ConfigMaps, all of them."""

from syncer.resources.configmaps import ConfigMapSyncer
from syncer.testing import strategies
from syncer.testing.objects import configmap
from syncer.testing.samples import Sample

SAMPLE = Sample(
    syncer=ConfigMapSyncer,
    objects=strategies.configmaps(),
    make=configmap,
    change={"data": {"color": "red", "size": "3"}},
    tamper={"data": {"color": "green"}},
    config={"sync": {"toHost": {"configMaps": {"all": True}}}},
)
