"""The workloads of CustomResourceDefinitions and of custom resources, with the operators that work on the host."""

from custom_scene import (
    CERTIFICATES,
    CLUSTER_ISSUERS,
    DATABASES,
    FAO,
    ISSUERS,
    MONITORS,
    PUBLIC,
    certificate,
    custom,
    definition,
    owned_by,
)
from harness import HOME, NAMESPACE
from sieve_workload import (
    Act,
    Stage,
    Workload,
    both,
    configured,
    drop,
    drop_copy,
    drop_host,
    edit,
    edit_copy,
    edit_host,
    on_host,
    put,
)

from syncer.api import Obj, is_deleting, labels_of
from syncer.testing.merge import merged
from syncer.testing.objects import configmap, crd, secret, service

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
WIDGETS = "widgets.example.com"
SHORT = {"spec": {"names": {"shortNames": ["w"]}}}
LABEL = "tenancy.x-k8s.io/super.public"


def public_crds() -> Workload:
    """A CRD of the host that is public, and is put back where the tenant changes it."""
    public, name = merged(crd(WIDGETS), PUBLIC), WIDGETS

    def edit_shown(two: Stage) -> None:
        found = two.virtual.get(CRDS, name)
        if found is not None and not is_deleting(found):
            two.virtual.put(merged(found, {"spec": {"names": {"shortNames": ["bad"]}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        found = two.host.get(CRDS, virtual["metadata"]["name"])
        return found is not None and not is_deleting(found) and labels_of(found).get(LABEL) == "true"

    option = {"enabled": True, "onRemoval": "delete-if-unused"}
    return Workload(
        "public-crds",
        configured("public-crds", fromHost={"customResourceDefinitions": option}),
        (
            on_host(public),
            edit_host(CRDS, name, SHORT),
            edit_shown,
            lambda two: two.virtual.delete(CRDS, name),
            edit_host(CRDS, name, {"metadata": {"labels": {LABEL: None}}}),
            edit_host(CRDS, name, PUBLIC),
            drop_host(CRDS, name),
            on_host(merged(public, SHORT)),
        ),
        shown=shown,
    )


def tenant_crds() -> Workload:
    """A CRD of the tenant's that the host gets too."""
    option = {"enabled": True, "names": [WIDGETS], "onRemoval": "delete-if-unused"}
    return Workload(
        "tenant-crds",
        configured("tenant-crds", toHost={"customResourceDefinitions": option}),
        (
            put(crd(WIDGETS)),
            lambda two: two.virtual.put(merged(two.virtual.get(CRDS, WIDGETS) or crd(WIDGETS), SHORT)),
            edit_host(CRDS, WIDGETS, {"spec": {"names": {"shortNames": ["bad"]}}}),
            drop_host(CRDS, WIDGETS),
            both(lambda two: two.virtual.delete(CRDS, WIDGETS), put(merged(crd(WIDGETS), SHORT))),
            lambda two: two.virtual.delete(CRDS, WIDGETS),
            put(crd(WIDGETS)),
        ),
    )


def defined(*definitions: Obj) -> Act:
    """Both sides serve these kinds."""

    def given(two: Stage) -> None:
        for server in (two.virtual, two.host):
            for each in definitions:
                server.put(each)

    return given


def cert_manager(two: Stage) -> None:
    """Go a step on with each Certificate on the host: make the Secret that it names, then say so."""
    for copy in two.host.objects(CERTIFICATES, HOME):
        name = copy["spec"].get("secretName", "")
        if is_deleting(copy) or not name:
            continue
        if two.host.get("secrets", f"{HOME}/{name}") is None:
            # Cleaned up with its certificate, as cert-manager's enableCertificateOwnerRef does.
            made = secret(name, {"tls.key": "key"}, namespace=HOME, type="Opaque", metadata=owned_by(copy))
            two.host.put(merged(made, {"metadata": {"labels": FAO}}))
        elif not copy.get("status"):
            two.host.put(merged(copy, {"status": {"revision": 1}}))


def issued(two: Stage, virtual: Obj) -> bool:
    """A Secret is shown while a Certificate names it and the host has made it."""
    name = virtual["metadata"]["name"]
    named = [one for one in two.virtual.objects(CERTIFICATES) if one["spec"].get("secretName") == name]
    made = two.host.get("secrets", two.host_path(name))
    return bool(named) and made is not None and labels_of(made).get("controller.cert-manager.io/fao") == "true"


def signs(two: Stage, original: Obj, copy: Obj) -> bool:
    """A Secret is copied while an Issuer names it."""
    if original["kind"] != "Secret":
        return True
    used = [(one["spec"].get("ca") or {}).get("secretName") for one in two.virtual.objects(ISSUERS)]
    return original["metadata"]["name"] in used


def certificates() -> Workload:
    """Certificates go down with what they name; the Secret that the host makes for each comes up."""
    related = {
        "resource": "secrets",
        "origin": "host",
        "by": {"reference": "spec.secretName", "selector": {"matchLabels": FAO}},
    }
    references = {"spec.secretName": "Secret", "spec.issuerRef.name": ISSUERS}
    entries = {
        CERTIFICATES: {"references": references, "related": [related]},
        ISSUERS: {"down": ["spec.ca"], "references": {"spec.ca.secretName": "Secret"}},
    }
    return Workload(
        "certificates",
        configured("secrets", "configmaps", custom=entries),
        (
            both(put(secret("ca")), put(custom(ISSUERS, "ca", spec={"ca": {"secretName": "ca"}}))),
            put(certificate()),
            edit(CERTIFICATES, "db", {"spec": {"dnsNames": ["a.example.org"]}}),
            edit_copy(CERTIFICATES, "db", {"spec": {"dnsNames": ["wrong"]}}),
            drop_copy(CERTIFICATES, "db"),
            lambda two: two.virtual.delete("secrets", f"{NAMESPACE}/db-tls"),
            edit(CERTIFICATES, "db", {"spec": {"secretName": "db-next"}}),
            both(drop(CERTIFICATES, "db"), put(certificate())),
            drop(ISSUERS, "ca"),
            drop(CERTIFICATES, "db"),
        ),
        given=(defined(definition(CERTIFICATES), definition(ISSUERS)),),
        reactions=(cert_manager,),
        wanted=signs,
        shown=issued,
    )


def issuers_from_host() -> Workload:
    """ClusterIssuers of the host that tenants see."""
    entry = {"direction": "fromHost", "selector": {"matchLabels": {LABEL: "true"}}}
    shared = merged(custom(CLUSTER_ISSUERS, "ca", namespace="", spec={"acme": {"server": "a"}}), PUBLIC)

    def edit_shown(two: Stage) -> None:
        found = two.virtual.get(CLUSTER_ISSUERS, "/ca")
        if found is not None:
            two.virtual.put(merged(found, {"spec": {"acme": {"server": "bad"}}}))

    def shown(two: Stage, virtual: Obj) -> bool:
        found = two.host.get(CLUSTER_ISSUERS, f"/{virtual['metadata']['name']}")
        return found is not None and labels_of(found).get(LABEL) == "true"

    return Workload(
        "clusterissuers",
        configured("configmaps", custom={CLUSTER_ISSUERS: entry}),
        (
            on_host(shared),
            edit_host(CLUSTER_ISSUERS, "/ca", {"spec": {"acme": {"server": "b"}}}),
            edit_shown,
            lambda two: two.virtual.delete(CLUSTER_ISSUERS, "/ca"),
            edit_host(CLUSTER_ISSUERS, "/ca", {"metadata": {"labels": {LABEL: None}}}),
            edit_host(CLUSTER_ISSUERS, "/ca", PUBLIC),
            both(drop_host(CLUSTER_ISSUERS, "/ca"), on_host(shared)),
            drop_host(CLUSTER_ISSUERS, "/ca"),
            on_host(shared),
        ),
        given=(defined(definition(CLUSTER_ISSUERS, scope="Cluster")),),
        shown=shown,
    )


def provider(two: Stage) -> None:
    """Go a step on with each database on the host: write the Secret that it asks for, then its status."""
    for copy in two.host.objects(DATABASES):
        to = copy["spec"].get("writeConnectionSecretToRef") or {}
        status = {"size": copy["spec"].get("size"), "observedGeneration": copy["metadata"]["generation"]}
        if to and two.host.get("secrets", f"{to['namespace']}/{to['name']}") is None:
            two.host.put(secret(to["name"], {"user": "me"}, namespace=to["namespace"], metadata=owned_by(copy)))
        elif copy.get("status") != status:
            two.host.put({**copy, "status": status})


def connected(two: Stage, virtual: Obj) -> bool:
    """The Secret is shown while the database is there and the host has made it."""
    return two.virtual.get(DATABASES, "/main") is not None and bool(two.host.get("secrets", two.host_path("db")))


def retained() -> Workload:
    """A kind without namespaces whose copies outlive their originals, with the Secret that the host writes."""
    to = "spec.writeConnectionSecretToRef.name"
    entry = {
        "scope": "Cluster",
        "name": "{cluster}.{name}",
        "references": {to: "Secret"},
        "related": [{"resource": "secrets", "origin": "host", "by": {"reference": to, "owner": True}}],
        "onDelete": "retain",
    }
    spec = {"size": "10Gi", "writeConnectionSecretToRef": {"name": "db", "namespace": NAMESPACE}}
    main = custom(DATABASES, "main", namespace="", spec=spec)

    def change(two: Stage, parts: Obj) -> None:
        found = two.virtual.get(DATABASES, "/main")
        if found is not None:
            two.virtual.put(merged(found, parts))

    return Workload(
        "databases",
        configured("secrets", "configmaps", custom={DATABASES: entry}),
        (
            put(main),
            lambda two: change(two, {"spec": {"size": "20Gi"}}),
            edit_host(DATABASES, "/vc.main", {"spec": {"size": "1Gi"}}),
            drop_host(DATABASES, "/vc.main"),
            lambda two: two.virtual.delete(DATABASES, "/main"),
            put(merged(main, {"spec": {"size": "30Gi"}})),
            lambda two: two.virtual.delete("secrets", f"{NAMESPACE}/db"),
            both(lambda two: two.virtual.delete(DATABASES, "/main"), put(main)),
        ),
        given=(defined(definition(DATABASES, scope="Cluster")),),
        reactions=(provider,),
        wanted=lambda two, original, copy: original["kind"] != "Secret",
        shown=connected,
    )


def monitors() -> Workload:
    """Monitors that name Secrets and ConfigMaps, of a kind that comes while the daemon runs."""
    references = {
        "spec.endpoints[].basicAuth.username.name": "Secret",
        "spec.endpoints[].tlsConfig.ca.configMap.name": "ConfigMap",
    }
    entry = {"down": ["spec.selector", "spec.endpoints"], "up": [], "references": references}
    endpoints = [
        {"port": "web", "basicAuth": {"username": {"name": "login", "key": "user"}}},
        {"port": "web", "tlsConfig": {"ca": {"configMap": {"name": "bundle", "key": "ca.crt"}}}},
    ]
    monitor = custom(MONITORS, "web", spec={"endpoints": endpoints, "selector": {}})

    def wanted(two: Stage, original: Obj, copy: Obj) -> bool:
        if original["kind"] not in ("Secret", "ConfigMap"):
            return True
        if original["metadata"]["name"] not in ("login", "bundle"):
            return False
        found = two.virtual.get(MONITORS, f"{NAMESPACE}/web")
        part = "basicAuth" if original["kind"] == "Secret" else "tlsConfig"
        return found is not None and any(part in one for one in found["spec"].get("endpoints") or ())

    return Workload(
        "servicemonitors",
        configured("secrets", "configmaps", "services", custom={MONITORS: entry}),
        (
            both(put(secret("login")), put(configmap("bundle")), put(service("web"))),
            put(monitor),
            edit(MONITORS, "web", {"spec": {"endpoints": endpoints[:1]}}),
            edit(MONITORS, "web", {"spec": {"endpoints": endpoints}}),
            edit_copy(MONITORS, "web", {"spec": {"endpoints": []}}),
            drop_copy("secrets", "login"),
            both(drop(MONITORS, "web"), put(monitor)),
            drop(MONITORS, "web"),
            put(monitor),
        ),
        given=(defined(definition(MONITORS)),),
        wanted=wanted,
    )
