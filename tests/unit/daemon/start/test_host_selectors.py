"""Objects of the host's own that select pods are looked at once, and the log says so if they can't be."""

import asyncio
from typing import cast

import pytest

from syncer.api import ClusterError, Forbidden, Marks, NameTranslator, Obj, Resource, Settings
from syncer.clusters.client import SideClient
from syncer.daemon.start.host_selectors import warn_of_selectors
from syncer.names import PerNamespace, SingleNamespace, Unchanged
from syncer.resources.kinds import SERVICES
from syncer.resources.pods.config import PodConfig
from syncer.testing.objects import service

OPEN = service("web", namespace="vc-ns", spec={"selector": {"app": "web"}})


class Host:
    """A host with one Service, and an error for lists of other kinds."""

    def __init__(self, error: ClusterError | None) -> None:
        self.error = error

    async def list(self, resource: Resource, *, namespace: str, selector: str) -> list[Obj]:
        """Return the objects of a kind, or raise the error."""
        assert (namespace, selector) == ("vc-ns", "!vsyncer.dev/cluster")
        if resource == SERVICES:
            return [OPEN]
        if self.error:
            raise self.error
        return []


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("error", [None, Forbidden("no right to list them")])
def test_kinds_that_cant_be_listed_are_named(
    check: bool, error: ClusterError | None, capsys: pytest.CaptureFixture[str]
) -> None:
    names = SingleNamespace(cluster="vc", namespace="vc-ns")
    sections = {"pods": PodConfig(check_selectors=check)}
    settings = Settings(cluster="vc", host_namespace="vc-ns", names=names, marks=Marks(), sections=sections)
    asyncio.run(warn_of_selectors(cast("SideClient", Host(error)), settings))
    output = capsys.readouterr().err
    assert "Service vc-ns/web" in output
    assert output.count("are not checked") == (1 if check and error else 0)
    if check and error:
        named = ("networkpolicies", "poddisruptionbudgets", "deployments", "replicasets", "statefulsets", "daemonsets")
        assert all(kind in output for kind in (*named, "replicationcontrollers", "jobs"))
        assert "no right to list them" in output


@pytest.mark.parametrize(
    "names", [PerNamespace(cluster="vc", namespace="vc-ns"), Unchanged(cluster="vc", namespace="")]
)
def test_listed_host_namespaces_are_looked_at_where_the_names_have_no_fixed_one(
    names: NameTranslator, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(
        cluster="vc",
        host_namespace="vc-ns",
        names=names,
        marks=Marks(),
        sections={"pods": PodConfig()},
        namespaces=frozenset({"vc-ns"}),
    )
    asyncio.run(warn_of_selectors(cast("SideClient", Host(None)), settings))
    assert "Service vc-ns/web" in capsys.readouterr().err
