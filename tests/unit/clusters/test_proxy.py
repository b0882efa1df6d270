"""The proxy for an API server: the kubeconfig's, else the environment's, by the rules of Go's client."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from syncer.api.errors import ConfigError
from syncer.clusters import kubeconfig
from syncer.clusters.proxy import Proxy, from_environment, parse


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://p", Proxy("p", 80, source="here")),
        ("http://p:3128", Proxy("p", 3128, source="here")),
        ("https://p", Proxy("p", 443, tls=True, source="here")),
        ("http://[fd00::1]:3128/", Proxy("fd00::1", 3128, source="here")),
        ("http://ann:p%40ss%3aw%c3%b6rd@p:1", Proxy("p", 1, False, "Basic YW5uOnBAc3M6d8O2cmQ=", "here")),
        ("http://ann@p:1", Proxy("p", 1, False, "Basic YW5uOg==", "here")),
    ],
)
def test_urls_of_proxies(url: str, expected: Proxy) -> None:
    assert parse(url, source="here") == expected


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("socks5://ann:secret@p:1", "only http and https proxies are supported, not socks5"),
        ("p:3128", "only http and https proxies are supported, not p"),
        ("//ann:secret@p", "only http and https proxies are supported, not a URL without a scheme"),
        ("http://ann:secret@p:99999", "not a URL of a proxy"),
        ("http://ann:secret@", "a URL of a proxy without a host"),
    ],
)
def test_invalid_proxy_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"^{why}$"):
        parse(url, source="here")


def test_proxy_is_shown_without_its_password() -> None:
    proxy = parse("https://ann:secret@p:3128", source="HTTPS_PROXY")
    assert str(proxy) == "the proxy https://p:3128 (from HTTPS_PROXY)"
    assert "secret" not in repr(proxy)
    assert "Basic" not in repr(proxy)


@pytest.mark.parametrize(
    ("environ", "tls", "expected"),
    [
        ({}, True, None),
        ({"HTTPS_PROXY": "http://a"}, True, ("a", "HTTPS_PROXY")),
        ({"HTTPS_PROXY": "http://a", "https_proxy": "http://b"}, True, ("a", "HTTPS_PROXY")),
        ({"HTTPS_PROXY": "", "https_proxy": "http://b"}, True, ("b", "https_proxy")),
        ({"HTTPS_PROXY": "a:3128"}, True, ("a", "HTTPS_PROXY")),
        ({"HTTP_PROXY": "http://a"}, True, None),
        ({"HTTP_PROXY": "http://a"}, False, ("a", "HTTP_PROXY")),
        ({"HTTPS_PROXY": "http://a"}, False, None),
        ({"ALL_PROXY": "http://a"}, True, None),
    ],
)
def test_variable_for_the_scheme(environ: Mapping[str, str], tls: bool, expected: tuple[str, str] | None) -> None:
    found = from_environment("api.example.com", 6443, tls=tls, environ=environ)
    assert (found and (found.host, found.source)) == expected


# The cases are those of golang.org/x/net/http/httpproxy (TestUseProxy and the documentation of Config.NoProxy).
@pytest.mark.parametrize(
    ("no_proxy", "host", "port", "direct"),
    [
        ("", "foo.com", 443, False),
        ("*", "foo.com", 443, True),
        (" , *,bar", "foo.com", 443, True),
        ("foo.com", "foo.com", 443, True),
        ("foo.com", "FOO.com", 443, True),
        ("Foo.Com", "foo.com", 443, True),
        ("foo.com", "bar.foo.com", 443, True),
        ("foo.com", "xfoo.com", 443, False),
        (".foo.com", "bar.foo.com", 443, True),
        (".foo.com", "foo.com", 443, False),
        ("*.foo.com", "bar.foo.com", 443, True),
        ("*.foo.com", "foo.com", 443, False),
        ("foo.com:6443", "foo.com", 6443, True),
        ("foo.com:6443", "foo.com", 443, False),
        ("192.168.1.1", "192.168.1.1", 443, True),
        ("192.168.1.1", "192.168.1.11", 443, False),
        ("192.168.1.1:6443", "192.168.1.1", 443, False),
        ("192.168.1.1:6443", "192.168.1.1", 6443, True),
        ("10.0.0.0/8", "10.96.0.1", 443, True),
        ("10.0.0.1/8", "10.96.0.1", 443, True),
        ("10.0.0.0/8", "11.0.0.1", 443, False),
        ("10.0.0.0/8", "ten.example.com", 443, False),
        ("10.0.0.0/99", "10.0.0.1", 443, False),
        ("2001:db8::52:0:1", "2001:db8::52:0:1", 443, True),
        ("[2001:db8::52:0:1]", "2001:db8::52:0:1", 443, True),
        ("[2001:db8::52:0:1]:443", "2001:db8::52:0:1", 443, True),
        ("[2001:db8::52:0:1]:443", "2001:db8::52:0:1", 6443, False),
        ("2001:db8::/32", "2001:db8::1", 443, True),
        (":443", "foo.com", 443, False),
        ("foo.com,bar.com", "bar.com", 443, True),
        ("", "localhost", 443, True),
        ("", "127.0.0.7", 443, True),
        ("", "::1", 443, True),
        ("", "localhost.example.com", 443, False),
    ],
)
def test_no_proxy_exceptions(no_proxy: str, host: str, port: int, direct: bool) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        environ = {"HTTPS_PROXY": "http://p", name: no_proxy}
        assert (from_environment(host, port, tls=True, environ=environ) is None) == direct


def kubeconfig_file(path: Path, **cluster: str) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k"}}],
                "clusters": [{"name": "k", "cluster": {"server": "https://api.example.com", **cluster}}],
            }
        )
    )
    return str(path)


def test_kubeconfig_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://environment", "NO_PROXY": "*"}
    own = kubeconfig_file(tmp_path / "own", **{"proxy-url": "http://own:3128"})
    assert kubeconfig.read(own, environ=environ).endpoint.proxy == Proxy("own", 3128, source=f"proxy-url in {own}")


def test_environment_names_the_proxy_for_files_and_service_accounts(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://p", "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    expected = Proxy("p", 80, source="HTTPS_PROXY")
    assert kubeconfig.read(kubeconfig_file(tmp_path / "k"), environ=environ).endpoint.proxy == expected
    (tmp_path / "token").touch()
    assert kubeconfig.in_cluster(environ, directory=tmp_path).endpoint.proxy == expected
    environ["NO_PROXY"] = "10.96.0.0/12"
    assert kubeconfig.in_cluster(environ, directory=tmp_path).endpoint.proxy is None


def test_mistake_names_its_source_and_no_password(tmp_path: Path) -> None:
    path = kubeconfig_file(tmp_path / "k", **{"proxy-url": "socks5://ann:secret@p:1"})
    with pytest.raises(ConfigError) as caught:
        kubeconfig.read(path, environ={})
    assert str(caught.value) == (
        f"{path}: clusters[0].cluster.proxy-url: only http and https proxies are supported, not socks5. "
        "Such as http://proxy.example.com:3128."
    )
    with pytest.raises(ConfigError) as caught:
        kubeconfig.read(kubeconfig_file(tmp_path / "k"), environ={"https_proxy": "socks5://ann:secret@p:1"})
    assert str(caught.value) == (
        "https_proxy in the environment: only http and https proxies are supported, not socks5. "
        "Set a URL such as http://proxy.example.com:3128, or list the API server in NO_PROXY."
    )
