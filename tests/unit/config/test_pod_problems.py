"""Options of Pods that no API server would accept in a Pod."""

import pytest

from syncer.api import ConfigError
from syncer.config import build, parse
from syncer.plugins import installed

#: Looked up once: each time, all built-in syncers are checked.
INSTALLED = installed()

HEAD = "apiVersion: vsyncer.dev/v1alpha1\nkind: SyncerConfig\ncluster: shop\nhost: {namespace: vc-shop}\n"


def problems(option: str) -> list[str]:
    try:
        build(parse(f"{HEAD}sync: {{toHost: {{pods: {{{option}}}}}}}\n", "f.yaml"), INSTALLED)
    except ConfigError as error:
        return [str(problem).removeprefix("f.yaml:5: sync.toHost.pods.") for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("allowVolumes: [hostpath]", "allowVolumes[0]: hostpath is no type of volume. Did you mean hostPath?"),
        ("allowVolumes: [projected.podcertificate]", "Did you mean projected.podCertificate?"),
        ('allowVolumes: ["*"]', "allowVolumes[0]: expected the field of a volume, such as nfs"),
        ('nodeSelector: {"a b": c}', "nodeSelector: "),
        ("nodeSelector: {a: 'b c'}", "nodeSelector: "),
        ("tolerations: [{}]", "tolerations[0]: a toleration without a key needs the operator Exists"),
        (
            "tolerations: [{key: a, operator: Exists, value: b}]",
            "tolerations[0]: a toleration with the operator Exists takes no value",
        ),
        ("runtimeClassName: gVisor", "runtimeClassName: expected a DNS name: lower-case letters"),
        ("priorityClassName: Tenants", "priorityClassName: expected a DNS name: lower-case letters"),
        (
            "priorityClassName: system-cluster-critical",
            "priorityClassName: system-cluster-critical is a class for Pods without which the host doesn't work",
        ),
        ("images: {Nginx: own/nginx}", "images: 'Nginx' is no image, such as nginx or quay.io/team/app:1.0"),
        ("images: {nginx: https://own/nginx}", "images: nginx: expected an image, such as registry.example.com/nginx"),
        ("images: {nginx: own/}", "images: nginx: expected an image, such as registry.example.com/nginx"),
        ('images: {"*": mirror.example.com}', "images: *: expected a registry or path that ends in /, such as"),
        ('images: {"*": "mirror.example.com//"}', "images: *: expected a registry or path that ends in /, such as"),
        ("images: {quay.io/: quay.io/a:1}", "images: quay.io/: expected a registry or path that ends in /, such as"),
        ("images: {quay.io/Team/: own/}", "images: 'quay.io/Team/' is no registry or path, such as docker.io/"),
        ('images: {"quay.io/*": own/}', "images: 'quay.io/*' is no image, such as nginx"),
        (
            "images: {nginx: own/a, docker.io/library/nginx: own/b}",
            "images: nginx and docker.io/library/nginx mean the same; leave one of them out",
        ),
        (
            "images: {docker.io/: own/a/, index.docker.io/: own/b/}",
            "images: docker.io/ and index.docker.io/ mean the same; leave one of them out",
        ),
    ],
)
def test_option_that_no_pod_could_have_is_refused(option: str, message: str) -> None:
    [problem] = problems(option)
    assert message in problem


@pytest.mark.parametrize(
    "option",
    [
        "allowVolumes: [csi, nfs, projected.clusterTrustBundle, ofTheFuture]",
        "nodeSelector: {example.org/pool: tenants}",
        "tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: a}]",
        "runtimeClassName: kata.v2",
        "priorityClassName: tenants.low",
        'images: {"*": "registry.example.com:5000/mirror/", quay.io/: quay.example.com/, bitnami/: own/}',
        'images: {nginx: own/nginx, "nginx:1.27": "[2001:db8::1]:5000/nginx:2", nginx:latest: localhost/n}',
    ],
)
def test_option_that_a_pod_can_have_is_accepted(option: str) -> None:
    assert problems(option) == []
