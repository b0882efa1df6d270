"""Events about Pods. Matrix and sieve have rows of their own for them."""

from hypothesis import strategies as st

from syncer.api import Key, Obj
from syncer.resources.events import EventSyncer
from syncer.resources.pods.syncer import PodSyncer
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.objects import host_copy
from syncer.testing.pod_strategies import pods
from syncer.testing.samples import Sample


def _reported(virtual: Obj) -> st.SearchStrategy[Scene]:
    copied = host_copy(virtual, metadata={"uid": "copy-1"})
    scene = st.builds(lambda event: (event, copied), strategies.events(st.just(copied)))
    return scene.map(lambda pair: Scene(_virtual_name(virtual, *pair), (virtual,), pair))


def _virtual_name(virtual: Obj, event: Obj, copied: Obj) -> Key:
    name = event["metadata"]["name"].replace(copied["metadata"]["name"], virtual["metadata"]["name"], 1)
    return Key(virtual["metadata"]["namespace"], name)


SAMPLE = Sample(
    syncer=EventSyncer,
    objects=pods().flatmap(_reported),
    together=(PodSyncer,),
    dropped=("involvedObject", "related"),
)
