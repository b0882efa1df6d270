"""Tenants at work: creates, updates and deletes at random, the same ones for the same seed."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from api import RESOURCES, Api

from syncer.api import AlreadyExists, ClusterError, Key, NotFound, Obj
from syncer.testing.objects import configmap, pod, secret, service

#: How likely an object that is there is deleted rather than changed.
DELETED = 0.3


class Load:
    """Writes to objects of some kinds in some namespaces, ``rate`` a second, whatever the API server says."""

    def __init__(
        self, api: Api, rng: random.Random, namespaces: Sequence[str], kinds: Sequence[str], *, rate: float, names: int
    ) -> None:
        self._api, self._rng, self._rate = api, rng, rate
        self._objects = [(kind, Key(ns, f"o-{n}")) for kind in kinds for ns in namespaces for n in range(names)]
        self._there: set[tuple[str, Key]] = set()
        self._number = 0
        #: Writes that were answered, by verb.
        self.done: Counter[str] = Counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write for as long as the block runs."""
        task = self._api.loop.start(self._run())
        try:
            yield
        finally:
            self._api.loop.end(task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.expovariate(self._rate))
            try:
                await self.write()
            except ClusterError:
                continue

    async def write(self) -> None:
        """One write."""
        target = self._rng.choice(self._objects)
        verb = "create" if target not in self._there else "delete" if self._rng.random() < DELETED else "patch"
        try:
            await self._write(verb, *target)
        except NotFound:
            self._there.discard(target)
        except AlreadyExists:
            self._there.add(target)
        else:
            self.done[verb] += 1

    async def _write(self, verb: str, kind: str, key: Key) -> None:
        cluster, resource, target = self._api.cluster, RESOURCES[kind], (kind, key)
        match verb:
            case "create":
                await cluster.create(resource, self._make(kind, key))
                self._there.add(target)
            case "delete":
                await cluster.delete(resource, key)
                self._there.discard(target)
            case _:
                made = self._make(kind, key)
                change = {part: value for part, value in made.items() if part in ("data", "spec") and kind != "Pod"}
                labels = {"labels": made["metadata"]["labels"]}
                await cluster.patch(resource, key, {**change, "metadata": labels})

    def _make(self, kind: str, key: Key) -> Obj:
        self._number += 1
        metadata = {"labels": {"number": str(self._number), f"only-{self._number % 3}": "1"}}
        text = {f"key-{self._number % 4}": f"value {self._number}"}
        match kind:
            case "ConfigMap":
                return configmap(key.name, text, namespace=key.namespace, metadata=metadata)
            case "Secret":
                return secret(key.name, text, namespace=key.namespace, metadata=metadata)
            case "Service":
                ports = [80 + self._number % 5]
                return service(key.name, ports, namespace=key.namespace, metadata=metadata)
            case _:
                spec = {"terminationGracePeriodSeconds": 1}
                return pod(key.name, namespace=key.namespace, metadata=metadata, spec=spec)
