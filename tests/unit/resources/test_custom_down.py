"""Custom resources that begin on the virtual side, from configuration alone."""

import itertools

import pytest
from custom_kinds import (
    CERT_MANAGER,
    CERTIFICATE,
    CERTIFICATES,
    CLASS,
    CLASSES,
    CLUSTER_ISSUERS,
    ISSUER,
    ISSUERS,
    MONITOR,
    MONITORS,
    world_of,
)
from custom_kinds import certificate as cert

from syncer.api import Decision, Key, Obj, Outcome, Refused, Right, Side, Verb, labels_of
from syncer.rights.rbac import needed
from syncer.testing import World
from syncer.testing.merge import merged
from syncer.testing.objects import build, configmap, pod_mounting, secret


def only_write(decision: Decision) -> Obj:
    [write] = decision.writes
    return write.obj


def in_step(world: World, syncer: str, key: str) -> None:
    """Carry out, and see that nothing is left to do."""
    world.settle(syncer, key)


def test_certificate_goes_to_the_host_with_host_names() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert()])
    host = only_write(world.decide(CERTIFICATE, "shop/db"))
    assert host["metadata"]["name"] == "db-x-shop-x-vc"
    assert host["spec"] == {
        "secretName": "db-tls-x-shop-x-vc",
        "dnsNames": ["db.example.org"],
        "issuerRef": {"name": "ca-x-shop-x-vc", "kind": "Issuer"},
    }


def test_forged_marks_stay_behind_under_whatever_name_a_template_has_them() -> None:
    forged = {"vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/virtual-name": "x"}
    spec = {"podLabels": {**forged, "app": "web"}, "parts": [{"commonAnnotations": forged}]}
    world = world_of(CERT_MANAGER).given(virtual=[cert(spec=spec)])
    host = only_write(world.decide(CERTIFICATE, "shop/db"))
    assert (host["spec"]["podLabels"], host["spec"]["parts"]) == ({"app": "web"}, [{"commonAnnotations": {}}])
    in_step(world, CERTIFICATE, "shop/db")


def test_forged_marks_in_a_template_stay_behind() -> None:
    """cert-manager writes the template's labels to its Secret, which would look like a copy of ours."""
    forged = {
        "vsyncer.dev/cluster": "vc.vc-ns",
        "vsyncer.dev/virtual-name": "x",
        "tenancy.x-k8s.io/super.public": "true",
    }
    template = {"labels": {**forged, "app": "web"}, "annotations": dict(forged)}
    world = world_of(CERT_MANAGER).given(virtual=[cert(spec={"secretTemplate": template})])
    host = only_write(world.decide(CERTIFICATE, "shop/db"))
    assert host["spec"]["secretTemplate"] == {"labels": {"app": "web"}, "annotations": {}}
    assert host["metadata"]["labels"]["vsyncer.dev/cluster"] == "vc.vc-ns", "its own marks stay"
    in_step(world, CERTIFICATE, "shop/db")


def test_virtual_object_is_not_changed() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert()])
    world.settle(CERTIFICATE, "shop/db")
    found = world.virtual("Certificate", "shop/db")
    assert found
    assert found["spec"] == cert()["spec"]


@pytest.mark.parametrize("kind", ["ClusterIssuer", "issuer", "Secret"])
def test_name_of_another_kind_does_not_go_down(kind: str) -> None:
    """As it is, it would name whatever the host has of that name: the host drops a kind that its schema lacks."""
    theirs = cert(spec={"issuerRef": {"name": "of-another-tenant", "kind": kind}})
    world = world_of(CERT_MANAGER).given(virtual=[theirs])
    with pytest.raises(Refused, match=f"spec.issuerRef.name: names a {kind}, and no such kind is synced"):
        world.decide(CERTIFICATE, "shop/db")


ISSUED = {
    **CERT_MANAGER,
    str(CLUSTER_ISSUERS): {"direction": "fromHost", "selector": {"matchLabels": {"public": "true"}}},
    CERTIFICATE: {"references": {"spec.issuerRef.name": [ISSUER, str(CLUSTER_ISSUERS)]}},
}


def test_kind_that_comes_from_the_host_has_one_name_on_both_sides() -> None:
    shown = build(CLUSTER_ISSUERS, "public", metadata={"labels": {"public": "true"}})
    public = cert("public", spec={"issuerRef": {"name": "public", "kind": "ClusterIssuer"}})
    world = world_of(ISSUED).given(virtual=[cert(), public], host=[shown])
    names = [
        only_write(world.decide(CERTIFICATE, key))["spec"]["issuerRef"]["name"] for key in ("shop/db", "shop/public")
    ]
    assert names == ["ca-x-shop-x-vc", "public"]


@pytest.mark.reason("NotShown")
def test_host_object_that_is_not_shown_cannot_be_used_by_its_name() -> None:
    """Whatever the tenant has of that name, and whatever mark they have put on it."""
    hidden = build(CLUSTER_ISSUERS, "internal")
    another_tenants = merged(hidden, {"metadata": {"labels": {"public": "true", "vsyncer.dev/cluster": "other"}}})
    own = build(CLUSTER_ISSUERS, "internal")
    forged = merged(own, {"metadata": {"labels": {"public": "true", "vsyncer.dev/cluster": "vc.vc-ns"}}})
    for virtual, host in itertools.product(([], [own], [forged]), ([], [hidden], [another_tenants])):
        world = world_of(ISSUED)
        named = {"issuerRef": {"name": "internal", "kind": "ClusterIssuer"}}
        world.given(virtual=[cert(spec=named), *virtual], host=host)
        decision = world.decide(CERTIFICATE, "shop/db")
        assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
        assert decision.reason == "it names the ClusterIssuer internal, which is none of those that the host shows"
        assert (Side.HOST, CLUSTER_ISSUERS, Key("", "internal")) in decision.on


def test_name_in_a_mapped_namespace_is_read_in_the_hosts() -> None:
    entries = {
        MONITOR: {"direction": "fromHost", "namespaces": {"infra": "shop", "other": "others"}},
        CLASS: {"references": {"spec.monitor.name": MONITOR}},
    }
    world = world_of(entries)
    world.given(
        virtual=[build(CLASSES, "gold", spec={"monitor": {"name": "web", "namespace": "shop"}})],
        host=[build(MONITORS, "web", namespace=each, spec={}) for each in ("shop", "other", "vc-ns")],
    )
    decision = world.decide(CLASS, "gold")
    assert (decision.outcome, decision.writes) == (Outcome.PENDING, ())
    assert decision.on == ((Side.HOST, MONITORS, Key("infra", "web")),)
    world.given(host=[build(MONITORS, "web", namespace="infra", spec={})])
    [write] = world.decide(CLASS, "gold").writes
    assert write.obj["spec"]["monitor"] == {"name": "web", "namespace": "infra"}, "as the host calls that namespace"


def test_name_without_its_namespace_is_not_taken_for_another_one_on_the_host() -> None:
    entries = {
        MONITOR: {"direction": "fromHost", "namespaces": {"infra": "shop"}},
        CERTIFICATE: {"references": {"spec.monitor.name": MONITOR}},
    }
    world = world_of(entries)
    world.given(
        virtual=[build(CERTIFICATES, "db", namespace="shop", spec={"monitor": {"name": "web"}})],
        host=[build(MONITORS, "web", namespace=each, spec={}) for each in ("infra", "vc-ns")],
    )
    with pytest.raises(Refused, match="another one on the host"):
        world.decide(CERTIFICATE, "shop/db")


def test_namespace_of_the_host_in_the_status_comes_up_as_the_virtual_one() -> None:
    entries = {
        MONITOR: {"direction": "fromHost", "namespaces": {"infra": "shop"}},
        CLASS: {"references": {"status.monitor.name": MONITOR}},
    }
    world = world_of(entries).given(virtual=[build(CLASSES, "gold", spec={})])
    in_step(world, CLASS, "gold")
    copy = world.copy_of(CLASS, "gold")
    assert copy
    world.given(host=[merged(copy, {"status": {"monitor": {"name": "web", "namespace": "infra"}}})])
    world.settle(CLASS, "gold")
    found = world.virtual("Class", "gold")
    assert found
    assert found["status"]["monitor"] == {"name": "web", "namespace": "shop"}


def test_host_objects_that_may_be_named_may_be_read() -> None:
    mapped = {MONITOR: {"direction": "fromHost", "namespaces": {"infra": "shop"}}}
    world = world_of({**mapped, CLASS: {"references": {"spec.monitor.name": MONITOR}}})
    granted = needed([world.syncer(CLASS)], settings=world.settings)
    assert Right(Side.HOST, MONITORS, ("get", "list", "watch"), namespaces=("infra",)) in granted
    assert [right.side for right in granted if right.resource == MONITORS] == [Side.HOST]


def test_status_comes_up_and_stale_fields_are_removed() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert(status={"stale": True})])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    status = {"conditions": [{"type": "Ready", "status": "True"}], "revision": 1}
    world.given(host=[merged(copy, {"status": status})])
    assert [str(call) for call in world.settle(CERTIFICATE, "shop/db")] == [
        "patch virtual certificates.cert-manager.io/status shop/db"
    ]
    found = world.virtual("Certificate", "shop/db")
    assert found
    assert found["status"] == status


def test_names_in_the_status_come_up_as_virtual_ones() -> None:
    """Also where the name on the host is hashed, and reveals nothing by itself."""
    long = "x" * 250
    references = {"spec.secretName": "Secret", "status.secrets[].name": "Secret"}
    world = world_of({CERTIFICATE: {"references": references}}).given(virtual=[cert(to=long)])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    named = [copy["spec"]["secretName"], "other-x-shop-x-vc", "made-by-the-operator"]
    assert "-x-shop" not in named[0]
    world.given(host=[merged(copy, {"status": {"secrets": [{"name": name} for name in named]}})])
    world.settle(CERTIFICATE, "shop/db")
    found = world.virtual("Certificate", "shop/db")
    assert found
    assert [each["name"] for each in found["status"]["secrets"]] == [long, "other", "made-by-the-operator"]


def test_secret_is_synced_while_an_object_names_it() -> None:
    issuer = build(ISSUERS, "ca", spec={"ca": {"secretName": "ca-key"}})
    world = world_of(CERT_MANAGER).given(virtual=[secret("ca-key"), issuer])
    assert world.settle("secrets", "shop/ca-key")
    world.woken()
    world.given(virtual=[merged(issuer, {"spec": {"ca": {"secretName": "other"}}})])
    assert ("secrets", Key("shop", "ca-key")) in {(one.syncer, one.key) for one in world.woken()}
    assert [write.verb for write in world.decide("secrets", "shop/ca-key").writes] == [Verb.DELETE]


def test_owner_is_requeued_when_a_named_object_changes() -> None:
    issuer = build(ISSUERS, "ca", spec={"ca": {"secretName": "ca-key"}})
    world = world_of(CERT_MANAGER).given(virtual=[issuer])
    world.woken()
    world.given(virtual=[secret("ca-key")])
    assert (ISSUER, Key("shop", "ca")) in {(one.syncer, one.key) for one in world.woken()}


def test_paths_of_a_service_monitor_are_all_found() -> None:
    references = {
        "spec.endpoints[].tlsConfig.ca.secret.name": "Secret",
        "spec.endpoints[].tlsConfig.ca.configMap.name": "ConfigMap",
        "spec.endpoints[].basicAuth.username.name": "Secret",
    }
    endpoints = [
        {"port": "web", "basicAuth": {"username": {"name": "login", "key": "user"}}},
        {"port": "tls", "tlsConfig": {"ca": {"configMap": {"name": "bundle", "key": "ca.crt"}}}},
        {"port": "both", "tlsConfig": {"ca": {"secret": {"name": "bundle", "key": "ca.crt"}}}},
        {"port": "none"},
    ]
    monitor = build(MONITORS, "web", spec={"endpoints": endpoints, "selector": {"matchLabels": {"app": "web"}}})
    world = world_of({MONITOR: {"references": references}})
    world.given(virtual=[monitor, configmap("bundle"), secret("bundle"), secret("login"), secret("idle")])
    host = only_write(world.decide(MONITOR, "shop/web"))
    assert host["spec"]["endpoints"] == [
        {"port": "web", "basicAuth": {"username": {"name": "login-x-shop-x-vc", "key": "user"}}},
        {"port": "tls", "tlsConfig": {"ca": {"configMap": {"name": "bundle-x-shop-x-vc", "key": "ca.crt"}}}},
        {"port": "both", "tlsConfig": {"ca": {"secret": {"name": "bundle-x-shop-x-vc", "key": "ca.crt"}}}},
        {"port": "none"},
    ]
    outcomes = {name: world.decide("secrets", f"shop/{name}").outcome for name in ("bundle", "login", "idle")}
    assert outcomes == {"bundle": Outcome.IN_STEP, "login": Outcome.IN_STEP, "idle": Outcome.SKIPPED}
    assert world.decide("configmaps", "shop/bundle").writes


def test_namespace_beside_a_name_is_translated_with_it() -> None:
    world = world_of({CLASS: {"references": {"spec.auth.name": "Secret"}}})
    world.given(virtual=[build(CLASSES, "gold", spec={"auth": {"name": "login", "namespace": "shop"}})])
    host = only_write(world.decide(CLASS, "gold"))
    assert host["metadata"]["name"] == "gold-x-vc-x-vc-ns"
    assert host["spec"] == {"auth": {"name": "login-x-shop-x-vc", "namespace": "vc-ns"}}


def test_object_without_a_namespace_may_not_name_one_of_the_hosts_objects() -> None:
    world = world_of({CLASS: {"references": {"spec.auth.name": "Secret"}}})
    world.given(virtual=[build(CLASSES, "gold", spec={"auth": {"name": "login"}})])
    with pytest.raises(Refused, match=r"spec\.auth\.name: names the Secret login without a namespace"):
        world.decide(CLASS, "gold")


def test_objects_are_synced_only_if_selected() -> None:
    entry = {**CERT_MANAGER[CERTIFICATE], "selector": {"matchLabels": {"sync": "yes"}}}
    public = cert("public", metadata={"labels": {"sync": "yes"}})
    world = world_of({**CERT_MANAGER, CERTIFICATE: entry}).given(virtual=[cert(), public])
    left_out = world.decide(CERTIFICATE, "shop/db")
    assert (left_out.outcome, left_out.reason) == (
        Outcome.SKIPPED,
        "its labels are not those of sync.custom.certificates.cert-manager.io.selector",
    )
    in_step(world, CERTIFICATE, "shop/public")
    world.given(virtual=[cert("public", metadata={"labels": {"sync": "no"}})])
    [write] = world.decide(CERTIFICATE, "shop/public").writes
    assert (write.side, write.verb) == (Side.HOST, Verb.DELETE)


def test_unsynced_object_refers_to_nothing() -> None:
    issuers = {**CERT_MANAGER[ISSUER], "selector": {"matchLabels": {"sync": "yes"}}}
    world = world_of({**CERT_MANAGER, ISSUER: issuers})
    world.given(virtual=[secret("ca-key"), build(ISSUERS, "ca", spec={"ca": {"secretName": "ca-key"}})])
    assert world.decide("secrets", "shop/ca-key").outcome is Outcome.SKIPPED


def test_template_names_the_copy_and_references_to_it() -> None:
    entries = merged(dict(CERT_MANAGER), {ISSUER: {"name": "{name}.{namespace}.{cluster}"}})
    world = world_of(entries).given(virtual=[cert(), build(ISSUERS, "ca", spec={})])
    assert only_write(world.decide(ISSUER, "shop/ca"))["metadata"]["name"] == "ca.shop.vc"
    host = only_write(world.decide(CERTIFICATE, "shop/db"))
    assert host["spec"]["issuerRef"]["name"] == "ca.shop.vc"


def test_paths_that_are_listed_alone_go_down() -> None:
    entry = {"down": ["spec.dnsNames", "extra"], "up": []}
    world = world_of({CERTIFICATE: entry}).given(virtual=[cert(extra={"a": 1})])
    host = only_write(world.decide(CERTIFICATE, "shop/db"))
    assert (host["spec"], host["extra"]) == ({"dnsNames": ["db.example.org"]}, {"a": 1})
    world.settle(CERTIFICATE, "shop/db")
    assert not [call for call in world.sent if call.side is Side.VIRTUAL]


def test_exact_removes_fields_added_on_the_host() -> None:
    world = world_of({CERTIFICATE: {"exact": ["spec"]}}).given(virtual=[cert()])
    in_step(world, CERTIFICATE, "shop/db")
    copy = world.copy_of(CERTIFICATE, "shop/db")
    assert copy
    world.given(host=[merged(copy, {"spec": {"usages": ["any"]}})])
    assert [call.body.get("spec") for call in world.settle(CERTIFICATE, "shop/db")] == [{"usages": None}]


def test_object_of_the_hosts_own_is_left_alone() -> None:
    theirs = build(CLASSES, "gold-x-vc-x-vc-ns", spec={"size": 1})
    world = world_of({CLASS: {}}).given(virtual=[build(CLASSES, "gold", spec={"size": 2})], host=[theirs])
    with pytest.raises(Refused, match="not ours"):
        world.apply(world.decide(CLASS, "gold"))
    found = world.host("Class", "gold-x-vc-x-vc-ns")
    assert found
    assert found["spec"] == {"size": 1}


BELONGING = {
    MONITOR: {
        "related": [
            {"resource": "configmaps", "by": {"selector": {"matchLabels": {"monitor": "{name}"}}}},
            {"resource": "secrets", "by": {"owner": True}},
            {"resource": "secrets", "by": {"reference": "spec.auth.name"}},
        ]
    }
}


def test_objects_that_belong_to_another_are_synced_with_it() -> None:
    monitor = build(MONITORS, "web", spec={"auth": {"name": "login"}}, metadata={"uid": "u-web"})
    owner = {"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "name": "web", "uid": "u-web"}
    world = world_of(BELONGING).given(
        virtual=[
            monitor,
            secret("login"),
            secret("owned", metadata={"ownerReferences": [owner]}),
            secret("other"),
            configmap("rules", metadata={"labels": {"monitor": "web"}}),
            configmap("others", metadata={"labels": {"monitor": "db"}}),
        ]
    )
    assert only_write(world.decide(MONITOR, "shop/web"))["spec"] == {"auth": {"name": "login-x-shop-x-vc"}}
    assert [bool(world.decide("secrets", f"shop/{name}").writes) for name in ("login", "owned", "other")] == [
        True,
        True,
        False,
    ]
    assert [bool(world.decide("configmaps", f"shop/{name}").writes) for name in ("rules", "others")] == [True, False]


def test_pod_and_the_certificate_agree_on_the_name_of_the_secret() -> None:
    world = world_of(CERT_MANAGER).given(virtual=[cert(), pod_mounting("web", secret="db-tls")])
    named = only_write(world.decide(CERTIFICATE, "shop/db"))["spec"]["secretName"]
    assert named == world.context("pods").host_name(world.syncer("secrets").resource, "shop", "db-tls")


@pytest.mark.reason("HostMakes")
def test_secret_of_that_name_made_by_the_tenant_is_not_put_in_the_operators_way() -> None:
    world = world_of(CERT_MANAGER, config={"sync": {"toHost": {"secrets": {"all": True}}}})
    world.given(virtual=[cert(), secret("db-tls"), pod_mounting("web", secret="db-tls")])
    decision = world.decide("secrets", "shop/db-tls")
    assert decision.writes == ()
    assert "the host makes it" in decision.reason


def test_labels_go_along_and_marks_are_ours() -> None:
    forged = cert(metadata={"labels": {"team": "a", "vsyncer.dev/cluster": "other"}})
    world = world_of(CERT_MANAGER).given(virtual=[forged])
    [write] = world.decide(CERTIFICATE, "shop/db").writes
    assert labels_of(write.obj) == {"team": "a", "vsyncer.dev/cluster": "vc.vc-ns", "vsyncer.dev/namespace": "shop"}
