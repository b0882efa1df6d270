"""The two sides of a virtual cluster are two clusters, and their logins are safe."""

import asyncio
from pathlib import Path

import pytest

from syncer.api import ConfigError, Forbidden, Key, Marks, NotFound, Obj, Resource, Settings, Side, Unreachable
from syncer.clusters import sameness
from syncer.clusters.login import ExecPlugin, LegacyProvider, Login
from syncer.clusters.transport import Endpoint
from syncer.daemon.start import sides
from syncer.names import SingleNamespace


class Origin:
    """The address of a stub."""

    def __init__(self, address: str) -> None:
        self.address = address


class Stub:
    """A cluster with two namespaces, or an error instead of each."""

    def __init__(self, address: str, uid: str | Exception, everywhere: str | Exception | None = None) -> None:
        self.origin = Origin(address)
        self.uids = {Key("", "vc-ns"): uid, Key("", "kube-system"): everywhere or Forbidden("no")}

    async def get(self, resource: Resource, key: Key) -> Obj:
        """Return the namespace, or raise the error."""
        assert resource.plural == "namespaces"
        uid = self.uids[key]
        if isinstance(uid, Exception):
            raise uid
        return {"metadata": {"name": key.name, "uid": uid}}


SETTINGS = Settings(
    cluster="vc",
    host_namespace="vc-ns",
    names=SingleNamespace(cluster="vc", namespace="vc-ns"),
    marks=Marks(),
    sections={},
)


def refused(virtual: Stub, host: Stub) -> bool:
    """Return True if the sides are refused."""
    try:
        asyncio.run(sides.must_differ(virtual, host, SETTINGS))  # type: ignore[arg-type]
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize(
    ("addresses", "uids", "expected"),
    [
        (("10.0.0.1:443", "api.example.org:443"), ("a", "a"), True),
        (("127.0.0.1:443", "localhost:443"), ("a", "b"), False),
        (("127.0.0.1:443", "localhost:443"), (NotFound("no"), "b"), False),
        (("127.0.0.1:443", "localhost:443"), ("a", Forbidden("no")), True),
        (("127.0.0.1:443", "localhost:443"), (Forbidden("no"), "b"), True),
        (("127.0.0.1:443", "localhost:444"), ("a", NotFound("no")), False),
    ],
)
def test_one_cluster_on_both_sides_is_refused(
    addresses: tuple[str, str], uids: tuple[str | Exception, str | Exception], expected: bool
) -> None:
    virtual, host = (Stub(*given) for given in zip(addresses, uids, strict=True))
    assert refused(virtual, host) is expected


@pytest.mark.parametrize("hidden", [NotFound("no"), Forbidden("no")])
@pytest.mark.parametrize(("uid", "expected"), [("a", True), ("b", False)])
def test_one_cluster_is_known_by_kube_system_where_the_host_namespace_does_not_tell(
    hidden: Exception, uid: str, expected: bool
) -> None:
    assert refused(Stub("10.0.0.1:443", hidden, "a"), Stub("api.example.org:443", hidden, uid)) is expected


def test_comparison_without_an_answer_goes_by_the_addresses() -> None:
    def compared(virtual: str, host: str) -> str:
        down = Stub(host, Unreachable("no route"))
        return asyncio.run(sides.compared(Stub(virtual, "a"), down, SETTINGS))  # type: ignore[arg-type]

    assert compared("127.0.0.1:1", "127.0.0.1:2") == "not compared with its host: no route"
    with pytest.raises(ConfigError, match=r"the same cluster, at 127\.0\.0\.1:1 and localhost:1"):
        compared("127.0.0.1:1", "localhost:1")


@pytest.mark.parametrize(
    ("uid", "message"),
    [
        ("a", None),
        (NotFound("no"), "the namespace vc-ns doesn't exist on the host. Create it, or correct the name."),
        (Forbidden("no"), "the daemon may not read the namespace vc-ns of the host: it doesn't exist, or"),
    ],
)
def test_host_namespace_that_is_not_there_is_a_problem(uid: str | Exception, message: str | None) -> None:
    problem = asyncio.run(sides.namespace_problem(Stub("a:1", uid), SETTINGS))  # type: ignore[arg-type]
    assert (problem is None) == (message is None)
    assert (message or "") in str(problem)
    assert problem is None or str(problem).startswith("host namespace of virtual cluster vc: ")


def test_comparison_refuses_a_missing_host_namespace() -> None:
    virtual, host = Stub("10.0.0.1:1", NotFound("no"), "a"), Stub("10.0.0.2:1", NotFound("no"), "b")
    with pytest.raises(ConfigError, match="the namespace vc-ns doesn't exist on the host"):
        asyncio.run(sides.compared(virtual, host, SETTINGS))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("login", "side", "message"),
    [
        (Login(Endpoint("a", 443)), Side.VIRTUAL, []),
        (Login(Endpoint("a", 443), insecure=True), Side.HOST, ["insecure-skip-tls-verify is set"]),
        (Login(Endpoint("a", 80, tls=False)), Side.VIRTUAL, ["the address begins with http://"]),
        (Login(Endpoint("a", 443), plugin=ExecPlugin("aws")), Side.VIRTUAL, ["runs a program"]),
        (Login(Endpoint("a", 443), plugin=ExecPlugin("aws")), Side.HOST, []),
    ],
)
def test_dangerous_login_is_warned_of(login: Login, side: Side, message: list[str]) -> None:
    found = list(sides.warnings_of(login, side, "virtual.kubeconfig", may_run_programs=True))
    assert len(found) == len(message)
    assert all(part in warning for part, warning in zip(message, found, strict=True))


@pytest.mark.parametrize("plugin", [ExecPlugin("aws"), LegacyProvider("gcp", {})])
def test_program_is_refused_where_none_may_run(plugin: ExecPlugin | LegacyProvider) -> None:
    login = Login(Endpoint("a", 443), plugin=plugin)
    with pytest.raises(ConfigError, match=r"kubeconfig of x: it runs a program .* allowExec .* is false.* or set"):
        list(sides.warnings_of(login, Side.VIRTUAL, "kubeconfig of x", may_run_programs=False))
    assert list(sides.warnings_of(Login(Endpoint("a", 443)), Side.VIRTUAL, "x", may_run_programs=False)) == []


def test_token_of_the_pod_itself_never_goes_to_the_tenant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sameness, "_SERVICE_ACCOUNTS", tmp_path)
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "token").touch()
    (tmp_path / "token").symlink_to("..data/token")
    login = Login(Endpoint("a", 443), token_file=tmp_path / "token")
    with pytest.raises(ConfigError, match="of this Pod's own service account"):
        list(sides.warnings_of(login, Side.VIRTUAL, "virtual.kubeconfig", may_run_programs=True))
    assert list(sides.warnings_of(login, Side.HOST, "host.kubeconfig", may_run_programs=True)) == []
