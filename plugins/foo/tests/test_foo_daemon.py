"""The installed package in the daemon, as the guide configures it.

The daemon is between two API servers in this process.
"""

import asyncio
import re
import sys
from pathlib import Path

import pytest
import yaml
from vsyncer_foo.foos import FOOS

from syncer.api import Obj
from syncer.testing import ApiServer
from syncer.testing.objects import build, namespace

#: How long the daemon may take.
SECONDS = 600.0
PACKAGE = Path(__file__).parents[1]
DEFINITION = yaml.safe_load((PACKAGE / "crd.yaml").read_text())
#: Each configuration of the guide, and what it shows that the daemon says.
GUIDED: list[tuple[str, str]] = re.findall(
    r"^```yaml\n(# syncer.yaml\n.*?)^```.*?^\$ syncer run --once --config syncer.yaml\n(.*?)^```",
    (PACKAGE.parent / "README.md").read_text(),
    re.DOTALL | re.MULTILINE,
)
#: Where a virtual API server that speaks https is found by itself.
NETWORKING = "networking: {apiServer: {host: 10.0.0.1}}\n"


async def cluster(folder: Path, side: str, space: str) -> ApiServer:
    """An API server with one namespace."""
    server = ApiServer(seed=side)
    server.put(namespace(space))
    await server.start()
    server.kubeconfig(folder / f"{side}.kubeconfig")
    return server


async def run_once(folder: Path) -> str:
    """Return the output of ``syncer run --once`` with the configuration in the folder."""
    off = ("--metrics-address", "0", "--health-address", "0")
    command = (sys.executable, "-m", "syncer", "run", "--once", "--config", "syncer.yaml", *off)
    output, log = folder / "output", folder / "log"
    with output.open("wb") as stdout, log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, stdout=stdout, stderr=stderr
        )
    try:
        await asyncio.wait_for(process.wait(), SECONDS)
    except TimeoutError:
        process.kill()
        raise AssertionError(
            f"{' '.join(command)}: not done after {SECONDS:g} s: {log.read_text()[-4000:]}"
        ) from None
    assert process.returncode == 0, log.read_text()
    return output.read_text()


def there(obj: Obj | None) -> Obj:
    assert obj is not None
    return obj


@pytest.mark.parametrize(("config", "output"), GUIDED, ids=["configuration alone", "as a package"])
def test_a_foo_goes_to_the_host_and_its_status_comes_back(
    config: str, output: str, tmp_path: Path
) -> None:
    (tmp_path / "syncer.yaml").write_text(config + NETWORKING)

    async def scenario() -> None:
        virtual = await cluster(tmp_path, "virtual", "shop")
        host = await cluster(tmp_path, "host", "vc-ns")
        host.put(DEFINITION)
        await run_once(tmp_path)
        virtual.put(build(FOOS, "web", spec={"replicas": 3}))
        assert await run_once(tmp_path) == output
        copy = there(host.get(FOOS, "vc-ns/web-x-shop-x-vc"))
        assert copy["spec"] == {"replicas": 3}
        host.put(copy | {"status": {"availableReplicas": 2}})
        await run_once(tmp_path)
        assert there(virtual.get(FOOS, "shop/web"))["status"] == {"availableReplicas": 2}
        for server in (virtual, host):
            await server.stop()

    asyncio.run(scenario())
