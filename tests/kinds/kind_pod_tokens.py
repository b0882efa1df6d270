"""Secrets of tokens that Pods mount. Matrix and sieve have rows of their own for them."""

from dataclasses import replace

from kind_pods import LIFE, runnable

from syncer.api import Obj
from syncer.resources.pods.fields import service_account
from syncer.resources.pods.tokens import PodTokenSyncer
from syncer.testing.laws import Scene
from syncer.testing.merge import merged
from syncer.testing.objects import serviceaccount
from syncer.testing.pod_strategies import pods
from syncer.testing.samples import Sample


def _with_token(virtual: Obj) -> Scene:
    sources = [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]
    volume = {"name": "kube-api-access", "projected": {"sources": sources}}
    spec = virtual["spec"]
    scene = runnable(
        merged(virtual, {"spec": {"volumes": [*spec.get("volumes", ()), volume], "schedulingGates": None}})
    )
    account = serviceaccount(service_account(virtual), namespace=scene.key.namespace)
    return replace(scene, virtual=(*scene.virtual, account))


SAMPLE = Sample(syncer=PodTokenSyncer, objects=pods().map(_with_token), events=LIFE)
