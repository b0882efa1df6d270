"""The same tests on the in-process API server and on a real kube-apiserver: where they differ, in-process is wrong."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_client import Api, Loop
from contract_crds import serve

from kube_envtest import ApiServer, ControlPlane, User

MASTERS = "system:masters"
USERS = {"root": (MASTERS,), "alice": (), "bob": ("team",)}
CONTROLLERS = (
    "namespace-controller,garbage-collector-controller,serviceaccount-controller,"
    "root-ca-certificate-publisher-controller,clusterrole-aggregation-controller"
)


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """The event loop of client and in-process server."""
    found = Loop()
    yield found
    found.stop()


@pytest.fixture(scope="session", params=["inprocess", pytest.param("real", marks=pytest.mark.controlplane)])
def session_api(request: pytest.FixtureRequest, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One API server of either kind for the whole session."""
    folder = tmp_path_factory.mktemp("api")
    yield from (_inprocess if request.param == "inprocess" else _real)(loop, folder)


def _inprocess(loop: Loop, folder: Path) -> Iterator[Api]:
    tokens = {name: f"{name}-token" for name in USERS}
    users = {tokens[name]: User(name, (*groups, "system:authenticated")) for name, groups in USERS.items()}
    server = ApiServer(tokens=users, rbac=True)
    url = loop.run(server.start(tls=True))
    config = server.kubeconfig(folder / "config", "root")
    trust = ssl.create_default_context(cadata=server.certificate)
    api = Api(loop, url, trust, tokens, config)
    api.server = server
    yield api
    api.close()
    loop.run(server.stop())


def _real(loop: Loop, folder: Path) -> Iterator[Api]:
    plane = ControlPlane("contract", controllers=CONTROLLERS)
    for name, groups in USERS.items():
        if name != "alice":  # is there already
            plane.add_user(name, *groups)
    with plane:
        tokens = {name: plane.token(name) for name in USERS}
        config = plane.kubeconfig("root", path=folder / "config")
        api = Api(loop, plane.url, ssl.create_default_context(cafile=str(plane.ca_file)), tokens, config)
        api.kind, api.plane = "real", plane
        yield api
        api.close()


@pytest.fixture
def api(session_api: Api) -> Iterator[Api]:
    """The API server of this test."""
    yield session_api
    session_api.close_watches()


@pytest.fixture
def ns(api: Api) -> str:
    """A namespace of this test's own, furnished."""
    name = api.name("ns")
    api.make("/api/v1/namespaces", {"metadata": {"name": name}})
    api.eventually(lambda: api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").status == 200)
    return name


@pytest.fixture(scope="session")
def group(session_api: Api) -> str:
    """A group that the tests share."""
    return serve(session_api)


@pytest.fixture
def own(api: Api) -> str:
    """A group that a test may change."""
    return serve(api)
