"""Stand-ins of nodes that Pods run on. Matrix and sieve have rows of their own for them."""

from syncer.api import Key, Obj
from syncer.resources.nodes import NodeSyncer
from syncer.testing.laws import Scene
from syncer.testing.objects import host_copy
from syncer.testing.pod_strategies import pods
from syncer.testing.samples import Sample


def _on_node(virtual: Obj) -> Scene:
    return Scene(Key("", "n1"), (virtual,), (host_copy(virtual, spec={"nodeName": "n1"}),))


SAMPLE = Sample(syncer=NodeSyncer, objects=pods().map(_on_node))
