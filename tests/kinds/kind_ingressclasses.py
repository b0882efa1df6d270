"""IngressClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import IngressClassSyncer
from syncer.resources.kinds import INGRESS_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=IngressClassSyncer,
    objects=strategies.objects(
        INGRESS_CLASSES,
        strategies.some(
            {
                "spec": strategies.some(
                    {
                        "controller": st.sampled_from(["example.org/a", "example.org/b"]),
                        "parameters": st.just({"kind": "IngressParameters", "name": "of-the-host"}),
                    }
                )
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"ingressClasses": {"enabled": True}}}},
    dropped=("spec",),
)
