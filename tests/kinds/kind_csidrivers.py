"""CSIDrivers of the host. Matrix and sieve have the same rows for them as for classes."""

from hypothesis import strategies as st

from syncer.api import Obj, key_of
from syncer.resources.csi import CsiDriverSyncer
from syncer.resources.kinds import CSI_DRIVERS
from syncer.testing import strategies
from syncer.testing.laws import Scene
from syncer.testing.samples import Sample


def _on_host(host: Obj) -> Scene:
    return Scene(key_of(host), (), (host,))


SAMPLE = Sample(
    syncer=CsiDriverSyncer,
    objects=strategies.objects(
        CSI_DRIVERS,
        strategies.some(
            {
                "spec": strategies.some(
                    {
                        "attachRequired": st.booleans(),
                        "fsGroupPolicy": st.sampled_from(["File", "None"]),
                        "storageCapacity": st.booleans(),
                        "tokenRequests": st.just([{"audience": "host.example.org"}]),
                        "volumeLifecycleModes": st.just(["Persistent", "Ephemeral"]),
                    }
                )
            }
        ),
    ).map(_on_host),
    config={"sync": {"fromHost": {"csiDrivers": {"enabled": True}}}},
    dropped=("spec",),
)
