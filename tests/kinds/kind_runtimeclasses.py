"""RuntimeClasses of the host. Matrix and sieve have a row of their own for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.classes import RuntimeClassSyncer
from syncer.resources.kinds import RUNTIME_CLASSES
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=RuntimeClassSyncer,
    objects=strategies.objects(
        RUNTIME_CLASSES,
        strategies.some(
            {
                "handler": st.sampled_from(["runsc", "kata"]),
                "overhead": st.just({"podFixed": {"memory": "64Mi"}}),
                "scheduling": st.just({"nodeSelector": {"runtime": "kata"}}),
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"runtimeClasses": {"enabled": True}}}},
    dropped=(),
)
