"""Selectors and credentials of monitors on the host, without a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import strategies as st
from vsyncer_prometheus_operator.kinds import POD_MONITORS, SERVICE_MONITORS
from vsyncer_prometheus_operator.monitors import PodMonitorSyncer, ServiceMonitorSyncer

from syncer.api import Obj, Refused
from syncer.api.selectors import matches
from syncer.names import PerNamespace
from syncer.testing import World, strategies
from syncer.testing.cases import Case, load
from syncer.testing.laws import laws_for
from syncer.testing.objects import build, secret, service


def monitor(**spec: Any) -> Obj:
    return build(
        SERVICE_MONITORS, "web", spec={"selector": {"matchLabels": {"app": "web"}}, **spec}
    )


def copied(syncer: str | type[Any], world: World, key: str) -> Obj:
    world.settle(syncer, key)
    copy = world.copy_of(syncer, key)
    assert copy is not None
    return copy


@pytest.mark.parametrize("case", load("tests/cases"), ids=str)
def test_case(case: Case) -> None:
    case.check([ServiceMonitorSyncer, PodMonitorSyncer])


@pytest.mark.parametrize(
    ("interval", "least", "refused"),
    [
        ("1ms", "", "must be at least 5s"),
        ("4s999ms", "", "must be at least 5s"),
        ("0", "", "is no interval"),
        ("0s", "", "must be at least 5s"),
        ("5", "", "is no interval"),
        ("5s", "", ""),
        ("1m30s", "", ""),
        ("1d", "", ""),
        ("", "", ""),
        ("29s", "30s", "must be at least 30s"),
        ("1ms", "1ms", ""),
    ],
)
def test_interval_below_the_least_is_refused(interval: str, least: str, refused: str) -> None:
    section = {"leastInterval": least} if least else {}
    world = World([ServiceMonitorSyncer], config={"sync": {"toHost": {"serviceMonitors": section}}})
    world.given(
        virtual=[monitor(endpoints=[{"port": "web"}, {"port": "web", "interval": interval}])]
    )
    if not refused:
        assert world.decide(ServiceMonitorSyncer, "shop/web").writes
        return
    with pytest.raises(Refused, match=rf"^spec\.endpoints\[1\]\.interval: {refused}"):
        world.decide(ServiceMonitorSyncer, "shop/web")


@pytest.mark.parametrize(
    ("names", "selected"),
    [
        ({}, {"shop"}),
        ({"matchNames": ["bank", "gone"]}, {"bank"}),
        ({"any": True}, {"shop", "bank"}),
    ],
    ids=["its own namespace", "those that it names", "all"],
)
def test_a_copy_selects_the_copies_of_the_services_its_original_selects(
    names: Obj, selected: set[str]
) -> None:
    services = [
        service("web", namespace=each, metadata={"labels": {"app": "web"}})
        for each in ("shop", "bank")
    ]
    world = World().given(virtual=[*services, monitor(namespaceSelector=names)])
    spec = copied(ServiceMonitorSyncer, world, "shop/web")["spec"]
    found = {
        namespace
        for namespace in ("shop", "bank")
        for copy in [copied("services", world, f"{namespace}/web")]
        if copy["metadata"]["namespace"] in spec["namespaceSelector"]["matchNames"]
        and matches(spec["selector"], copy["metadata"]["labels"])
    }
    assert found == selected


def test_a_service_of_another_virtual_cluster_is_never_selected() -> None:
    world = World([ServiceMonitorSyncer]).given(virtual=[monitor(namespaceSelector={"any": True})])
    other = World(cluster="other").given(
        virtual=[service("web", metadata={"labels": {"app": "web"}})]
    )
    labels = copied("services", other, "shop/web")["metadata"]["labels"]
    assert not matches(copied(ServiceMonitorSyncer, world, "shop/web")["spec"]["selector"], labels)


def test_where_each_virtual_namespace_has_one_of_its_own_on_the_host() -> None:
    world = World([ServiceMonitorSyncer], translator=PerNamespace)
    world.given(virtual=[monitor(namespaceSelector={"matchNames": ["shop", "bank"]})])
    spec = copied(ServiceMonitorSyncer, world, "shop/web")["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["bank-x-vc-x-vc-ns", "shop-x-vc-x-vc-ns"]}
    world.given(virtual=[monitor(namespaceSelector={"any": True})])
    assert copied(ServiceMonitorSyncer, world, "shop/web")["spec"]["namespaceSelector"] == {
        "any": True
    }


def test_the_password_is_on_the_host_while_a_monitor_names_it() -> None:
    credentials = {
        "username": {"name": "login", "key": "user"},
        "password": {"name": "login", "key": "password"},
    }
    endpoint = {"port": "http", "basicAuth": credentials}
    world = World().given(virtual=[secret("login"), monitor(endpoints=[endpoint])])
    copy = copied(ServiceMonitorSyncer, world, "shop/web")
    name = copied("secrets", world, "shop/login")["metadata"]["name"]
    assert copy["spec"]["endpoints"][0]["basicAuth"]["password"] == {
        "name": name,
        "key": "password",
    }
    world.gone(virtual=[monitor()])
    world.settle("secrets", "shop/login")
    assert world.copy_of("secrets", "shop/login") is None


def test_the_configuration_of_the_readme_is_accepted() -> None:
    [block] = re.findall(
        r"```yaml\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.DOTALL
    )
    world = World([ServiceMonitorSyncer, PodMonitorSyncer], config=yaml.safe_load(block))
    assert set(world.pair.controllers) == {"servicemonitors", "podmonitors"}


SELECTORS = strategies.some({"matchLabels": strategies.LABEL_MAPS})
NAMESPACES = st.one_of(
    st.just({"any": True}), strategies.some({"matchNames": st.lists(strategies.LABELS, max_size=2)})
)
ENDPOINT = strategies.some(
    {
        "port": st.just("http"),
        "bearerTokenSecret": st.builds(
            lambda name: {"name": name, "key": "token"}, strategies.NAMES
        ),
        "tlsConfig": strategies.some({"serverName": "web", "caFile": "/etc/ca"}),
    }
)


def monitors(endpoints: str) -> st.SearchStrategy[Obj]:
    fields = {
        "selector": SELECTORS,
        "namespaceSelector": NAMESPACES,
        endpoints: st.lists(ENDPOINT, max_size=2),
    }
    return st.fixed_dictionaries({"spec": strategies.some(fields)})


TestServiceMonitors = laws_for(
    ServiceMonitorSyncer,
    objects=strategies.objects(SERVICE_MONITORS, monitors("endpoints")),
    dropped=["spec"],  # an object with an unknown field in it is refused
)
TestPodMonitors = laws_for(
    PodMonitorSyncer,
    objects=strategies.objects(POD_MONITORS, monitors("podMetricsEndpoints")),
    dropped=["spec"],  # an object with an unknown field in it is refused
)
