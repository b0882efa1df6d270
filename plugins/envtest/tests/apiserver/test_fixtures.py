"""The pytest plugin: the skipped tests, the messages, and the refusal to run."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import pytest

    @pytest.mark.controlplane
    def test_marked() -> None:
        raise AssertionError

    @pytest.fixture
    def own(control_plane_programs):
        raise AssertionError

    def test_through_a_fixture(own) -> None:
        raise AssertionError

    def test_in_process(api_server, api_server_kubeconfig) -> None:
        assert api_server.url in api_server_kubeconfig.read_text()
"""


@pytest.fixture
def none_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENVTEST_CONTROLPLANE", "ENVTEST_DOCKER", "ENVTEST_REQUIRED", "KUBEBUILDER_ASSETS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("none_there")
def test_tests_that_need_a_real_api_server_are_skipped_loudly(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest("--strict-markers")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["2 tests on real API servers were SKIPPED: * set KUBEBUILDER_ASSETS *"])


@pytest.mark.usefixtures("none_there")
def test_required_api_server_that_is_missing_stops_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVTEST_REQUIRED", "1")
    pytester.makepyfile(TESTS)
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*ENVTEST_REQUIRED=1, but no real kube-apiserver here*"])


@pytest.mark.usefixtures("none_there")
def test_other_tests_run_where_there_is_none(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVTEST_REQUIRED", "1")
    pytester.makepyfile("def test_own() -> None: pass")
    pytester.runpytest().assert_outcomes(passed=1)
