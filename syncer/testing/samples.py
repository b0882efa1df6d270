"""A kind as tests need it: which objects there are, and what may happen to them.

The sample of a kind is a file ``kind_<name>.py`` with ``SAMPLE``, beside the tests of its package::

    from syncer.testing import strategies
    from syncer.testing.objects import build
    from syncer.testing.samples import Sample

    SPECS = strategies.some({"size": st.integers()})
    SAMPLE = Sample(
        syncer=Gadgets,
        objects=strategies.objects(GADGETS, strategies.some({"spec": SPECS})),
        make=lambda name: build(GADGETS, name, spec={"size": 1}),
        change={"spec": {"size": 2}},
        reports=({"status": {"phase": "Ready"}}, {"status": {"phase": "Failed"}}),
    )

Its laws are ``TestLaws = SAMPLE.laws()``. All else takes samples by the names of their syncers:
``hack/kind`` in a checkout of vsyncer runs it for a package.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from syncer.api import NameTranslator, Obj, Resource, Side, Syncer, metadata_key, path_steps
from syncer.directions import direction_class
from syncer.names import SingleNamespace
from syncer.testing.laws import laws_for
from syncer.testing.merge import merged
from syncer.testing.objects import NAMESPACE, crd, crd_version
from syncer.testing.trial import Event

#: The prefix of the files that have samples.
PREFIX = "kind_"
#: The change of a kind of which only labels and annotations cross.
LABELLED: Mapping[str, Any] = {"metadata": {"labels": {"tier": "front"}}}


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """A kind as tests need it.

    Raises:
        ValueError: Something is missing, or doesn't fit the syncer.
    """

    #: The syncer of the kind.
    syncer: type[Syncer]
    #: Generates objects, or scenes, for the laws.
    objects: st.SearchStrategy[Any]
    #: Returns an object of this name in the namespace ``shop``, as a tenant creates it. None: the
    #: kind doesn't begin in a virtual namespace, or has a life of its own, and each suite has rows
    #: for it.
    make: Callable[[str], Obj] | None = None
    #: A merge patch: what its tenant changes.
    change: Obj = field(default_factory=lambda: dict(LABELLED))
    #: A merge patch: what someone on the host changes in the copy; by default the same.
    tamper: Obj | None = None
    #: Two merge patches, one after the other: what the host reports on the copy. None if nothing
    #: comes up.
    reports: tuple[Obj, Obj] | None = None
    #: What stands in the configuration for it, as ``{"sync": {"toHost": {"gadgets": {"maxSize":
    #: 20}}}}``.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: Other syncers without which it doesn't work.
    together: tuple[type[Syncer], ...] = ()
    #: The name translator for the laws.
    translator: type[NameTranslator] = SingleNamespace
    #: Paths of fields that the copy omits on purpose.
    dropped: tuple[str, ...] = ()
    #: Further events for the laws, by name.
    events: Mapping[str, Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.make is None:
            return
        made = self.make("x")
        resource = self.resource
        if not direction_class(self.syncer).goes_down or not resource.namespaced:
            raise ValueError(
                f"{self.syncer.name}: only a namespaced kind that goes to the host can have `make`",
            )
        if (made.get("apiVersion"), made.get("kind")) != (resource.api_version, resource.kind):
            raise ValueError(
                f"{self.syncer.name}: `make` returns a {made.get('kind')}, not a {resource.kind}",
            )
        if (made["metadata"].get("namespace"), made["metadata"]["name"]) != (NAMESPACE, "x"):
            raise ValueError(
                f"{self.syncer.name}: `make` has to return an object of that name in {NAMESPACE}",
            )
        if self.reports is None and self.syncer.up:
            why = "it has `up`, so give two `reports` of the host, which come up"
            raise ValueError(f"{self.syncer.name}: {why}")

    @property
    def name(self) -> str:
        """The name of the syncer."""
        return self.syncer.name

    @property
    def resource(self) -> Resource:
        """The virtual resource."""
        return self.syncer.resource

    @property
    def plural(self) -> str:
        """The resource as people name it: ``secrets``, ``gadgets.example.org``."""
        return str(self.resource)

    @property
    def tampered(self) -> Obj:
        """The merge patch of someone on the host."""
        return self.change if self.tamper is None else self.tamper

    @property
    def sync(self) -> Mapping[str, Any]:
        """The ``sync`` part of the configuration, in which the kind is enabled."""
        direction, _, section = self.syncer.section.partition(".")
        return merged({direction: {section: {"enabled": True}}}, dict(self.config.get("sync", {})))

    def object(self, name: str, **parts: Any) -> Obj:
        """Return an object of this name, with ``parts`` merged into it.

        Raises:
            ValueError: The kind has no ``make``.
        """
        if self.make is None:
            raise ValueError(f"{self.name} has no `make`")
        return merged(self.make(name), parts)

    def laws(self) -> type:
        """Return the laws of the kind, a class of tests for pytest."""
        return laws_for(
            self.syncer,
            objects=self.objects,
            config=merged(dict(self.config), {"sync": dict(self.sync)}),
            translator=self.translator,
            together=self.together,
            dropped=self.dropped,
            events=self.events,
        )

    def definition(self, side: Side) -> Obj:
        """Return the CRD of the kind, for a test's API server of that side that doesn't serve it.

        Raises:
            ValueError: It is a kind of Kubernetes, which is no matter of a CRD.
        """
        resource = self.resource if side is Side.VIRTUAL else self.syncer.host_resource
        if resource.is_built_in:
            why = f"the API server for tests doesn't serve {resource}, a kind of Kubernetes"
            raise ValueError(f"{why}: add it to kube_envtest/apiserver/resources.py")
        names = {
            "kind": resource.kind,
            "listKind": f"{resource.kind}List",
            "singular": resource.kind.lower(),
        }
        owned = (*self.syncer.down, *self.syncer.both, *self.syncer.up)
        fields = {path_steps(path)[0] for path in owned if not metadata_key(path)}
        anything = {"x-kubernetes-preserve-unknown-fields": True}
        schema = {"properties": {name: dict(anything) for name in sorted(fields)}}
        version = crd_version(resource.version, storage=True, schema={"openAPIV3Schema": schema})
        scope = "Namespaced" if resource.namespaced else "Cluster"
        return crd(str(resource), [version], scope=scope, spec={"names": names})


def load(folder: str | Path) -> list[Sample]:
    """Return the samples in the files ``kind_*.py`` of a folder, which may import each other.

    Raises:
        ValueError: A file has no ``SAMPLE``.
    """
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return [_sample(path) for path in sorted(Path(folder).glob(f"{PREFIX}*.py"))]


def by_name(folders: Iterable[str | Path]) -> dict[str, Sample]:
    """Return the samples of all folders, by the names of their syncers."""
    return {sample.name: sample for folder in folders for sample in load(folder)}


def _sample(path: Path) -> Sample:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, "SAMPLE", None)
    if not isinstance(found, Sample):
        raise ValueError(f"{path} has no SAMPLE; set it to a syncer.testing.samples.Sample")
    return found
