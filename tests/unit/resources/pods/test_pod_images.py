"""Names of images on the host."""

import pytest

from syncer.resources.pods.images import ImageNames

DIGEST = "sha256:" + "ab" * 32
MIRROR = "registry.example.com/mirror/"

#: Names with the repository as distribution/reference normalises it, and what follows that.
NORMALISED = [
    ("nginx", "docker.io/library/nginx", ""),
    ("nginx:1.27", "docker.io/library/nginx", ":1.27"),
    (f"nginx@{DIGEST}", "docker.io/library/nginx", f"@{DIGEST}"),
    (f"nginx:1.27@{DIGEST}", "docker.io/library/nginx", f":1.27@{DIGEST}"),
    ("docker.io/nginx", "docker.io/library/nginx", ""),
    ("index.docker.io/nginx:1", "docker.io/library/nginx", ":1"),
    ("bitnami/redis:7", "docker.io/bitnami/redis", ":7"),
    ("docker.io/bitnami/redis", "docker.io/bitnami/redis", ""),
    ("library/nginx", "docker.io/library/nginx", ""),
    ("docker.io", "docker.io/library/docker.io", ""),
    ("quay.io/team/app:1.0", "quay.io/team/app", ":1.0"),
    ("localhost/app", "localhost/app", ""),
    ("localhost:5000", "docker.io/library/localhost", ":5000"),
    ("localhost:5000/app:1", "localhost:5000/app", ":1"),
    ("registry:5000/app", "registry:5000/app", ""),
    (f"[2001:db8::1]:5000/app@{DIGEST}", "[2001:db8::1]:5000/app", f"@{DIGEST}"),
    ("[2001:db8::1]/app", "[2001:db8::1]/app", ""),
    ("REGISTRY/app", "REGISTRY/app", ""),
]


def on_host(image: str, **mapping: str) -> str:
    return ImageNames(mapping).on_host(image)


@pytest.mark.parametrize(("image", "repository", "version"), NORMALISED)
def test_mirror_has_each_image_by_its_full_name(image: str, repository: str, version: str) -> None:
    assert ImageNames({"*": MIRROR}).on_host(image) == f"{MIRROR}{repository}{version}"


@pytest.mark.parametrize(("image", "repository", "version"), NORMALISED)
def test_repository_is_found_by_each_of_its_names(image: str, repository: str, version: str) -> None:
    names = ImageNames({repository: "quay.io/own/app"})
    assert names.on_host(image) == f"quay.io/own/app{version}"
    assert names.on_host("other/app") == "other/app"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx:1.27", "own/nginx:patched"),
        ("nginx:1.26", "own/web:1.26"),
        (f"nginx:1.27@{DIGEST}", f"own/web:1.27@{DIGEST}"),
        ("bitnami/redis", "quay.io/proxy/redis"),
        ("bitnami/redis/extra:1", "quay.io/bitnami/redis/extra:1"),
        ("mysql:8", "quay.io/hub/library/mysql:8"),
        ("quay.io/a/b:1", f"{MIRROR}quay.io/a/b:1"),
    ],
)
def test_most_precise_key_counts(image: str, expected: str) -> None:
    mapping = {
        "*": MIRROR,
        "docker.io/": "quay.io/hub/",
        "bitnami/": "quay.io/bitnami/",
        "bitnami/redis": "quay.io/proxy/redis",
        "nginx": "own/web",
        "nginx:1.27": "own/nginx:patched",
    }
    assert ImageNames(mapping).on_host(image) == expected
    assert ImageNames(dict(reversed(mapping.items()))).on_host(image) == expected


@pytest.mark.parametrize("image", ["nginx", "nginx:latest", "docker.io/library/nginx:latest"])
def test_image_without_a_version_is_the_latest(image: str) -> None:
    assert on_host(image, **{"nginx:latest": "own/nginx:1"}) == "own/nginx:1"
    assert on_host(image, nginx="own/nginx:1") == "own/nginx:1"
    assert on_host(image, **{"nginx:1": "own/nginx:1"}) == image


def test_version_stays_unless_the_new_image_has_one() -> None:
    pinned = f"nginx:1.27@{DIGEST}"
    assert on_host(pinned, nginx="own/nginx") == f"own/nginx:1.27@{DIGEST}"
    assert on_host(pinned, nginx="own/nginx:2") == "own/nginx:2"
    assert on_host(pinned, **{"nginx:1.27": "own/nginx"}) == pinned, "a digest is another image"
    assert on_host(pinned, **{pinned: "own/nginx"}) == f"own/nginx:1.27@{DIGEST}"
    assert on_host("nginx:1.27", **{"nginx:1.27": "registry:5000/nginx"}) == "registry:5000/nginx:1.27"


def test_image_of_the_mirror_stays() -> None:
    """The mirror's own name stands in it, whoever wrote it, and once."""
    names = ImageNames({"*": MIRROR, "quay.io/": "harbor.example.com/quay/"})
    for image in ("nginx:1", "quay.io/a/b"):
        assert names.on_host(names.on_host(image)) == names.on_host(image)
    assert names.on_host("registry.example.com/mirror2/app") == f"{MIRROR}registry.example.com/mirror2/app"
    hub = ImageNames({"docker.io/": "index.docker.io/proxied/"})
    assert hub.on_host("nginx") == "docker.io/proxied/library/nginx"
    assert hub.on_host("proxied/app:1") == "proxied/app:1"


@pytest.mark.parametrize("image", ["Nginx", "", "a//b", "nginx:", "@", ":", "/", "nginx@a/b", "a/../b", "x" * 300])
def test_no_text_gets_past_a_mirror(image: str) -> None:
    """The host's kubelet refuses these, and is never the one to name the registry."""
    assert ImageNames({"*": MIRROR}).on_host(image).startswith(MIRROR)


def test_without_a_mapping_each_image_stays() -> None:
    for image, _, _ in NORMALISED:
        assert ImageNames({}).on_host(image) == image
