"""Other owners of fields and host deletion policies take the rights that they need, and no more."""

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from syncer.api import Side
from syncer.resources.configmaps import ConfigMapSyncer
from syncer.resources.kinds import NAMESPACES, SERVICES
from syncer.resources.namespaces import NamespaceSyncer
from syncer.resources.services import ServiceSyncer
from syncer.rights.rbac import allows, manifests, needed
from syncer.testing import World


class Shared(ServiceSyncer):
    """Says in its class that both sides own a field."""

    name = "shared"
    both: ClassVar[tuple[str, ...]] = ("spec.sessionAffinity",)
    rights = ()  # type: ignore[assignment]


class Plain(Shared):
    """Takes nothing but status over from the host."""

    name = "plain"
    both = ()


def verbs(syncer: type[ServiceSyncer], **options: Any) -> Mapping[str, bool]:
    """Return the verbs for virtual Services, and for host namespaces."""
    world = World([syncer], config={"sync": {"toHost": {syncer.name: {"clusterIP": "own", **options}}}})
    granted = needed([world.syncer(syncer)], settings=world.settings)
    return {verb: allows(granted, Side.VIRTUAL, SERVICES, verb) for verb in ("create", "patch", "delete")}


@pytest.mark.parametrize(
    ("syncer", "options", "more"),
    [
        (Plain, {}, set()),
        (Plain, {"authority": {"spec.sessionAffinity": "virtual"}}, set()),
        (Plain, {"authority": {"spec.sessionAffinity": "host"}}, {"patch"}),
        (Plain, {"authority": {"spec.sessionAffinity": "both"}}, {"patch"}),
        (Plain, {"onHostDeletion": "report"}, {"patch"}),
        (Plain, {"onHostDeletion": "propagate"}, {"patch", "delete"}),
        (Shared, {}, {"patch"}),
    ],
)
def test_rights_follow_from_the_rules(syncer: type[ServiceSyncer], options: Any, more: set[str]) -> None:
    found = verbs(syncer, **options)
    assert {verb for verb, is_allowed in found.items() if is_allowed} == more


def test_host_namespace_is_read_by_a_right_in_it() -> None:
    options = {"sync": {"toHost": {"configMaps": {"onHostDeletion": "propagate"}}}}
    world = World([ConfigMapSyncer], config=options)
    granted = needed([world.syncer(ConfigMapSyncer)], settings=world.settings)
    made = manifests(granted, cluster="vc", home="vc-ns", host_namespaces=("vc-ns",))[Side.HOST]
    assert {(role["kind"], role["metadata"].get("namespace")) for role in made} == {("Role", "vc-ns")}
    everywhere = manifests(granted, cluster="vc", home="vc-ns", host_namespaces=None)[Side.HOST]
    [role] = [one for one in everywhere if one["kind"] == "ClusterRole"]
    assert {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]} in role["rules"]


def test_kind_without_namespaces_reads_none() -> None:
    options = {"sync": {"toHost": {"namespaces": {"onHostDeletion": "propagate"}}}}
    world = World([NamespaceSyncer], config=options)
    granted = needed([NamespaceSyncer()], settings=world.settings)
    assert allows(granted, Side.VIRTUAL, NAMESPACES, "get")
