"""Factories of controllers that other packages offer by entry points."""

import sys
from collections.abc import Callable

import pytest
from fleet_scene import eventually
from registry_scene import Scene

from syncer.multicluster import ClusterRegistry, PluginError, installed_factories, known_factories
from syncer.multicluster.factories import GROUP

Install = Callable[..., None]
CODE = """
    from syncer.multicluster import Controller, Resource

    seen = []

    async def reconcile(request):
        seen.append(request)

    def controller(of):
        made = Controller(reconcile)
        made.watch_object(of.cluster, Resource("v1", "Pod", "pods"))
        return made

    nothing = 5
"""


async def test_factory_of_another_package_makes_a_controller_in_each_cluster(install: Install) -> None:
    install("acme-backups", CODE, group=GROUP, backups="controller")
    assert known_factories() == ["backups"]
    scene = Scene()
    scene.registry = ClusterRegistry(scene.manage.cluster, factories=[scene.pods, *installed_factories(["backups"])])
    async with scene.playing():
        await scene.spawn("eu")
        await scene.spawn("us")
        seen = sys.modules["acme_backups"].seen
        await eventually(lambda: {str(request) for request in seen} == {"eu: shop/a", "us: shop/a"})


def test_factories_are_in_the_order_of_their_names_and_others_are_not_imported(install: Install) -> None:
    install("acme-one", CODE, group=GROUP, one="controller")
    install("acme-two", CODE, group=GROUP, two="controller")
    install("acme-bad", "raise RuntimeError('imported')", group=GROUP, bad="controller")
    found = installed_factories(["two", "one"])
    assert [factory.__module__ for factory in found] == ["acme_two", "acme_one"]
    assert "acme_bad" not in sys.modules
    assert installed_factories([]) == []
    with pytest.raises(
        PluginError, match=r"plugin bad .from acme-bad 1.2.: cannot be imported: RuntimeError: imported"
    ):
        installed_factories()


def test_unknown_or_invalid_factory_is_refused(install: Install) -> None:
    with pytest.raises(PluginError, match="no installed package offers such a factory of controllers; there are: none"):
        installed_factories(["backups"])
    install("acme-backups", CODE, group=GROUP, backups="controller", number="nothing", gone="other")
    with pytest.raises(PluginError, match="there are: backups, gone, number"):
        installed_factories(["restores"])
    with pytest.raises(PluginError, match=r"from acme-backups 1.2.: is no function of a Spawned, but 5"):
        installed_factories(["number"])
    with pytest.raises(PluginError, match="acme_backups has no other"):
        installed_factories(["gone"])


def test_factory_that_two_packages_offer_is_refused(install: Install) -> None:
    install("acme-backups", CODE, group=GROUP, backups="controller")
    install("other-backups", CODE, group=GROUP, backups="controller", version="3")
    both = r"is offered by (acme-backups 1\.2 and other-backups 3|other-backups 3 and acme-backups 1\.2)"
    with pytest.raises(PluginError, match=both):
        installed_factories(["backups"])
