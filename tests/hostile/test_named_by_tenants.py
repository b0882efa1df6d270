"""A name in a tenant's object leads to nothing of the host's."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hostile_scene import CLUSTER, DAEMON, HOME, NAMESPACE, HostileScene, eventually
from sampled import SAMPLES

from kube_envtest import Rule
from syncer.api import Key, Obj, Resource, Side
from syncer.resources.kinds import PERSISTENT_VOLUME_CLAIMS, SECRETS, VOLUME_SNAPSHOTS
from syncer.testing.merge import merged
from syncer.testing.objects import build, crd, pod, pod_mounting, secret, serviceaccount

CRDS = Path(__file__).parents[1] / "crds"
CERTIFICATE = "certificates.cert-manager.io"
ISSUER = "issuers.cert-manager.io"
#: A Certificate whose Secret comes up, as in README.
RELATED = {
    "references": {"spec.secretName": "Secret"},
    "related": [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretName"}}],
}


def _theirs(hostile: HostileScene, name: str) -> Obj:
    """Put a Secret of the host's where the copy of the tenant's would be, and return it."""
    host_key = hostile.names.to_host(SECRETS, Key(NAMESPACE, name))
    eventually(lambda: hostile.operator.get("namespaces", host_key.namespace), "the host namespace is there")
    return hostile.operator.put(secret(host_key.name, {"key": "host"}, namespace=host_key.namespace))


@pytest.mark.parametrize("optional", [False, True], ids=["required", "optional"])
def test_pod_mounts_no_secret_of_the_hosts(hostile: HostileScene, optional: bool) -> None:
    hostile.start()
    hostile.serves_others()
    theirs = _theirs(hostile, "etcd-certs")
    thief = pod_mounting("thief", secret="etcd-certs")
    thief["spec"]["volumes"][0]["secret"]["optional"] = optional
    hostile.tenant.put(thief)
    hostile.serves_others()
    hostile.quiet()
    # 0aeb964 has made the Pod, which mounts the host's Secret.
    assert hostile.copy(thief) is None
    hostile.operator.delete("secrets", f"{theirs['metadata']['namespace']}/{theirs['metadata']['name']}")
    own = hostile.tenant.put(secret("etcd-certs", {"key": "mine"}))
    assert hostile.copied(own)["data"] == own["data"]
    hostile.copied(thief)


@pytest.mark.translators("per-namespace", "unchanged", reason="the others' names bear the cluster's")
def test_pod_waits_where_the_hosts_secret_could_still_come(hostile: HostileScene) -> None:
    hostile.start()
    thief = hostile.tenant.put(pod_mounting("thief", secret="etcd-certs"))
    hostile.serves_others()
    hostile.quiet()
    # 0aeb964 has made the Pod.
    assert hostile.copy(thief) is None
    _theirs(hostile, "etcd-certs")
    hostile.serves_others()
    hostile.quiet()
    assert hostile.copy(thief) is None


@pytest.mark.translators("single-namespace", "vcluster-compat", reason="with the others a Pod waits for the copy")
def test_pod_mounts_no_secret_of_the_hosts_before_the_secrets_are_known(hostile: HostileScene) -> None:
    hostile.start()
    theirs = _theirs(hostile, "etcd-certs")
    hostile.daemon.stop()
    outage = Rule(verb="list", user=DAEMON.name, resource="secrets", status=500)
    hostile.tenant.call(lambda server: server.faults.add(outage))
    hostile.daemon.spawn()
    hostile.serves_others()
    thief = hostile.tenant.put(pod_mounting("thief", secret="etcd-certs"))
    hostile.serves_others()
    hostile.copied(hostile.tenant.put(pod("another")))
    # 0aeb964 has made the Pod, which mounts the host's Secret.
    assert hostile.copy(thief) is None
    hostile.operator.delete("secrets", f"{theirs['metadata']['namespace']}/{theirs['metadata']['name']}")
    hostile.copied(thief)


def _define(hostile: HostileScene, *names: str) -> None:
    for name in names:
        definition = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
        for server in (hostile.tenant, hostile.operator):
            server.put(definition)


def _certificate(name: str, to: str) -> Obj:
    spec: dict[str, Any] = {"secretName": to, "dnsNames": ["a.example.org"], "issuerRef": {"name": "ca"}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata, "spec": spec}


def test_certificate_is_signed_by_no_issuer_of_the_hosts(hostile: HostileScene) -> None:
    """On 0aeb964 the copy is there, and the host's own Issuer signs it."""
    _define(hostile, CERTIFICATE, ISSUER)
    issuers, references = Resource("cert-manager.io/v1", "Issuer", "issuers"), {"spec.issuerRef.name": ISSUER}
    hostile.start(sync={"custom": {CERTIFICATE: {"references": references}, ISSUER: {}}})
    host_key = hostile.names.to_host(issuers, Key(NAMESPACE, "ca"))
    eventually(lambda: hostile.operator.get("namespaces", host_key.namespace), "the host namespace is there")
    theirs = hostile.operator.put(
        build(issuers, host_key.name, namespace=host_key.namespace, spec={"selfSigned": {"crlDistributionPoints": []}})
    )
    thief = hostile.tenant.put(_certificate("thief", "thief-tls"))
    hostile.serves_others()
    hostile.quiet()
    assert hostile.copy(thief) is None
    assert hostile.operator.get(ISSUER, str(host_key)) == theirs
    hostile.operator.delete(ISSUER, str(host_key))
    own = hostile.tenant.put(build(issuers, "ca", namespace=NAMESPACE, spec={"selfSigned": {}}))
    assert hostile.copied(own)["spec"] == {"selfSigned": {}}
    assert hostile.copied(thief)["spec"]["issuerRef"]["name"] == host_key.name


CLAIM: Obj = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.mark.parametrize("kind", [VOLUME_SNAPSHOTS, PERSISTENT_VOLUME_CLAIMS], ids=lambda kind: str(kind.kind))
def test_claim_and_snapshot_take_no_data_of_the_hosts(hostile: HostileScene, kind: Resource) -> None:
    """The host's own claim or snapshot is where the copy of the tenant's would be."""
    sample = SAMPLES["volumesnapshots"]
    hostile.tenant.put(sample.definition(Side.VIRTUAL))
    hostile.operator.put(sample.definition(Side.HOST))
    hostile.start(sync={"toHost": {"volumeSnapshots": {"enabled": True}}})
    host_key = hostile.names.to_host(kind, Key(NAMESPACE, "bank"))
    eventually(lambda: hostile.operator.get("namespaces", host_key.namespace), "the host namespace is there")
    spec = CLAIM if kind is PERSISTENT_VOLUME_CLAIMS else {"source": {"persistentVolumeClaimName": "bank"}}
    theirs = hostile.operator.put(build(kind, host_key.name, namespace=host_key.namespace, spec=spec))

    source = {"kind": kind.kind, "name": "bank", **({"apiGroup": kind.group} if kind.group else {})}
    thief = hostile.tenant.put(build(PERSISTENT_VOLUME_CLAIMS, "thief", spec={**CLAIM, "dataSource": source}))
    thieves = [thief]
    if kind is PERSISTENT_VOLUME_CLAIMS:
        spec = {"source": {"persistentVolumeClaimName": "bank"}}
        thieves.append(hostile.tenant.put(build(VOLUME_SNAPSHOTS, "thief", spec=spec)))
    hostile.serves_others()
    hostile.quiet()
    assert [hostile.copy(each) for each in thieves] == [None] * len(thieves)

    hostile.operator.delete(str(kind), f"{theirs['metadata']['namespace']}/{theirs['metadata']['name']}")
    spec = CLAIM if kind is PERSISTENT_VOLUME_CLAIMS else {"source": {"persistentVolumeClaimName": "own"}}
    hostile.tenant.put(build(PERSISTENT_VOLUME_CLAIMS, "own", spec=CLAIM))
    hostile.copied(hostile.tenant.put(build(kind, "bank", spec=spec)))
    for each in thieves:
        hostile.copied(each)


@pytest.mark.translators("single-namespace", "vcluster-compat", reason="the others refuse this configuration")
def test_tokens_of_a_pod_appear_nowhere(hostile: HostileScene) -> None:
    _define(hostile, CERTIFICATE)
    hostile.start(sync={"custom": {CERTIFICATE: RELATED}})
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    hostile.tenant.put(serviceaccount("admin"))
    hostile.tenant.put(pod("admin", spec={"serviceAccountName": "admin", "volumes": [volume]}))
    host_key = hostile.names.to_host(SECRETS, Key(NAMESPACE, "admin.pod-tokens"))
    eventually(lambda: hostile.operator.get("secrets", str(host_key)), "the tokens are on the host")
    hostile.tenant.put(_certificate("thief", "admin.pod-tokens"))
    hostile.tenant.put(pod_mounting("thief", secret="admin.pod-tokens"))
    hostile.serves_others()
    hostile.quiet()
    # 0aeb964 shows them as the Secret that the Certificate names, and lets the Pod mount them.
    assert hostile.tenant.get("secrets", f"{NAMESPACE}/admin.pod-tokens") is None
    assert hostile.operator.get(CERTIFICATE, f"{HOME}/thief-x-{NAMESPACE}-x-{CLUSTER}") is None
    assert hostile.copy(pod("thief")) is None


def _is_fine(hostile: HostileScene, **sections: Any) -> str:
    """Return what `syncer config validate` says, with the status in front."""
    file = hostile.folder / "given.yaml"
    file.write_text(yaml.safe_dump(hostile.config(**sections)))
    result = hostile.command("config", "validate", str(file))
    return f"{result.returncode} {result.stdout}{result.stderr}"


def test_template_of_a_referenced_kind_must_name_the_cluster(hostile: HostileScene) -> None:
    entries = {CERTIFICATE: {"references": {"spec.issuerRef.name": ISSUER}}, ISSUER: {"name": "{namespace}-{name}"}}
    # 0aeb964 says that it is fine.
    output = _is_fine(hostile, sync={"custom": entries})
    assert output.startswith("2 ")
    assert f"sync.custom.{ISSUER}.name: must have {{cluster}} in it" in output
    entries = merged(entries, {ISSUER: {"name": "{cluster}-{namespace}-{name}"}})
    assert _is_fine(hostile, sync={"custom": entries}).startswith("0 ")


@pytest.mark.translators("unchanged", reason="it alone gives a tenant's names to the host as they are")
def test_names_are_the_hosts_only_for_a_trusted_tenant(hostile: HostileScene) -> None:
    # 0aeb964 says that it is fine.
    output = _is_fine(hostile, names={"trustTenant": None})
    assert output.startswith("2 ")
    assert "Set names.trustTenant to true" in output


@pytest.mark.translators("unchanged", reason="it alone leads from a tenant's namespace into one of the host's")
@pytest.mark.parametrize("exists", [False, True], ids=["nothing", "theirs"])
def test_secret_to_be_made_is_in_no_namespace_of_the_hosts(hostile: HostileScene, exists: bool) -> None:
    """085074c looks there, and copies the object with the name if nothing is there: the host's operator may make it."""
    kind = Resource("example.com/v1", "Voucher", "vouchers")
    for server in (hostile.tenant, hostile.operator):
        server.put(crd(str(kind)))
    related = [{"resource": "secrets", "origin": "host", "by": {"reference": "spec.secretRef.name", "owner": True}}]
    entry = {"references": {"spec.secretRef.name": "Secret"}, "related": related}
    if exists:
        hostile.operator.put(secret("admin", {"key": "host"}, namespace="default"))
    hostile.start(sync={"custom": {str(kind): entry}})
    thief = build(kind, "thief", namespace=NAMESPACE, spec={"secretRef": {"name": "admin", "namespace": "default"}})
    hostile.tenant.put(thief)
    output = hostile.event_message(thief, "NamespaceRefused")
    assert "it names the Secret default/admin, and nothing of its namespace is synced" in output
    assert hostile.copy(thief) is None
    assert [each.path for each in hostile.asked if "/namespaces/default/" in each.path] == []
