"""The images that the tests run, under the names that the tests want; `docs/conformance.md`
says of each how it differs from the original.
"""

from pathlib import Path

from hack.planes import BINARY
from hack.realnode.archive import Image, write
from hack.suite import programs

_REGISTRY = "registry.k8s.io/e2e-test-images"
BUSYBOX = f"{_REGISTRY}/busybox:1.37.0-1"
AGNHOST = f"{_REGISTRY}/agnhost:2.63.0"
#: An older one, to which a test upgrades or from which it does.
AGNHOST_BEFORE = f"{_REGISTRY}/agnhost:2.55"
DNS_TESTING = f"{_REGISTRY}/glibc-dns-testing:2.0.0"
NGINX = f"{_REGISTRY}/nginx:1.15-4"
NGINX_NEW = f"{_REGISTRY}/nginx:1.27-0"
KITTEN = f"{_REGISTRY}/kitten:1.8"
NAUTILUS = f"{_REGISTRY}/nautilus:1.8"
NONROOT = f"{_REGISTRY}/nonroot:1.5"
NONEWPRIVS = f"{_REGISTRY}/nonewprivs:1.4"
SAMPLE_APISERVER = f"{_REGISTRY}/sample-apiserver:1.29.2"
ETCD = "registry.k8s.io/etcd:3.6.8-0"

_ACCOUNTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
#: The user and the group that a test of supplemental groups expects in agnhost.
_USER = "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n"
_GROUPS = "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
_NGINX = """\
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 256; }
http {
    include /etc/nginx/mime.types;
    access_log /dev/stdout;
    server { listen 80; location / { root /usr/share/nginx/html; index index.html; } }
}
"""


def write_images(path: Path) -> None:
    """Write the archive of all images, and build their contents."""
    write(path, _images(programs.sources()))


def _images(sources: Path) -> list[Image]:
    shell = programs.busybox()
    debian = programs.base()
    links = {f"bin/{name}": "busybox" for name in programs.commands(shell) if name != "busybox"}
    busybox = Image(
        [BUSYBOX],
        [],
        {"bin/busybox": shell, **_ACCOUNTS},
        {**links, "usr/bin/env": "/bin/busybox"},
        command=["sh"],
    )
    nginx = Image(
        [NGINX, NGINX_NEW],
        files={
            "etc/nginx/nginx.conf": _NGINX,
            "usr/share/nginx/html/index.html": "<h1>Welcome to nginx!</h1>\n",
        },
        base=debian,
        command=["nginx", "-g", "daemon off;"],
    )
    agnhost = _agnhost(sources, debian)
    return [
        busybox,
        agnhost,
        *(
            _page(name, tag, sources, agnhost)
            for name, tag in (("kitten", KITTEN), ("nautilus", NAUTILUS))
        ),
        nginx,
        Image([NONROOT], base=debian, user="1234", command=["bash"]),
        Image(
            [NONEWPRIVS],
            files={"usr/local/bin/nnp": programs.nonewprivs()},
            modes={"usr/local/bin/nnp": 0o6755},
            base=debian,
            command=["nnp"],
        ),
        Image(
            [SAMPLE_APISERVER],
            ["/sample-apiserver"],
            {"sample-apiserver": programs.sample_apiserver()},
            base=debian,
        ),
        Image(
            [ETCD],
            [],
            {"usr/local/bin/etcd": BINARY},
            base=busybox,
            command=["/usr/local/bin/etcd"],
        ),
    ]


def _agnhost(sources: Path, debian: Path) -> Image:
    certificates = {
        name: (sources / "agnhost" / "porter" / name).read_text()
        for name in ("localhost.crt", "localhost.key")
    }
    accounts = {name: programs.file_in(debian, name) for name in ("etc/passwd", "etc/group")}
    accounts["etc/passwd"] += _USER
    accounts["etc/group"] += _GROUPS
    return Image(
        [AGNHOST, AGNHOST_BEFORE, DNS_TESTING],
        ["/agnhost"],
        {"agnhost": programs.agnhost(), **certificates, **accounts},
        {"agnhost-2": "agnhost", "usr/local/bin/iperf": "/usr/bin/iperf"},
        base=debian,
        command=["pause"],
        folders=["uploads", "home/user-defined-in-image"],
    )


def _page(name: str, tag: str, sources: Path, agnhost: Image) -> Image:
    html = sources / name / "html"
    files: dict[str, Path | str] = {path: html / path for path in (f"{name}.jpg", "data.json")}
    return Image(
        [tag],
        ["/agnhost"],
        files,
        base=agnhost,
        command=["test-webserver"],
        modes=dict.fromkeys(files, 0o644),
    )
