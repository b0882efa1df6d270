"""A real Prometheus that scrapes pages of this machine, and what a Grafana dashboard asks it."""

import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml
from api import PATIENCE, eventually

from hack.ports import free_port
from hack.realnode import builds
from kube_envtest.controlplane.processes import spawn
from syncer.api import Obj

#: Seconds between two scrapes, and between two evaluations of the alerts.
INTERVAL = 1
#: Seconds between the points of a graph.
STEP = 5
#: What Grafana puts for $__rate_interval with Prometheus' usual four scrapes a minute.
RATE_INTERVAL = "1m"

_LABEL_VALUES = re.compile(r"label_values\((.+), (\w+)\)")


@dataclass(frozen=True)
class Target:
    """A page of metrics, and the labels that a Prometheus in a cluster gives to whatever is scraped from it."""

    job: str
    address: str
    labels: Mapping[str, str]
    #: True for a page whose labels `namespace` and `pod` are those of the objects that it is about.
    honor_labels: bool = False


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    port: int

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of the HTTP API."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as page:
                return json.load(page)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def numbers(self, expression: str, *, since: float) -> list[float]:
        """Return all numbers of a graph of an expression from a time on, in seconds since 1970; NaN is none."""
        span = {"start": str(since), "end": str(time.time()), "step": str(STEP)}
        graph = self.ask("query_range", query=expression, **span)["result"]
        return _numbers(value for series in graph for value in series["values"])

    def numbers_now(self, expression: str) -> list[float]:
        """Return the numbers that an expression has now; NaN is none."""
        return _numbers(series["value"] for series in self.ask("query", query=expression)["result"])

    def is_ready(self) -> bool:
        """Return True once it answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=PATIENCE):
                return True
        except OSError:
            return False


def _numbers(values: Iterable[tuple[float, str]]) -> list[float]:
    return [number for _, text in values if not math.isnan(number := float(text))]


@contextmanager
def prometheus(folder: Path, targets: Sequence[Target], alerts: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes these targets, with these alerts, and whose data is in a folder."""
    made = Prometheus(free_port())
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(_config(targets, alerts)))
    command = [str(builds.tool("prometheus")), f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]
    log = folder / "prometheus.log"
    process = spawn([*command, f"--web.listen-address=127.0.0.1:{made.port}", "--log.level=warn"], log, folder)
    try:
        eventually(lambda: process.poll() is not None or made.is_ready(), "Prometheus is ready")
        assert process.poll() is None, log.read_text()
        yield made
    finally:
        process.kill()
        process.wait(600)
        print(log.read_text())  # pytest shows it where the test has failed


def _config(targets: Sequence[Target], alerts: Path) -> Obj:
    every = {"scrape_interval": f"{INTERVAL}s", "scrape_timeout": f"{INTERVAL}s", "evaluation_interval": f"{INTERVAL}s"}
    jobs = [
        {
            "job_name": target.job,
            "honor_labels": target.honor_labels,
            "static_configs": [{"targets": [target.address], "labels": dict(target.labels)}],
        }
        for target in targets
    ]
    return {"global": every, "rule_files": [str(alerts)], "scrape_configs": jobs}


@contextmanager
def served(text: str) -> Iterator[str]:
    """Serve a page of metrics; yield its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Page, text)) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Page(BaseHTTPRequestHandler):
    def __init__(self, text: str, *arguments: Any) -> None:
        self._text = text
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self._text.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Query:
    """What a panel of a dashboard asks."""

    panel: str
    expression: str
    #: True for a table of what is now, False for a graph, or the last value of one.
    is_instant: bool

    def __str__(self) -> str:
        return f"{self.panel}: {self.expression}"

    def is_answered(self, source: Prometheus, *, since: float) -> bool:
        """Return True if the panel shows a number, of the time since then."""
        found = source.numbers_now(self.expression) if self.is_instant else source.numbers(self.expression, since=since)
        return bool(found)

    def filled(self, variables: Mapping[str, str]) -> "Query":
        """Return the query with Grafana's variables replaced."""
        return Query(self.panel, _filled(self.expression, variables), self.is_instant)


@dataclass(frozen=True)
class Dashboard:
    """A dashboard of Grafana."""

    content: Obj

    @classmethod
    def read(cls, file: Path) -> "Dashboard":
        """Return the one in a file."""
        return cls(json.loads(file.read_text()))

    def queries(self) -> list[Query]:
        """Return what its panels ask; a row asks nothing."""
        return [
            Query(panel["title"], target["expr"], target.get("instant", False))
            for panel in self.content["panels"]
            if panel["type"] != "row"
            for target in panel["targets"]
        ]

    def choices(self, source: Prometheus) -> dict[str, list[str]]:
        """Return the values that each variable offers, each in view of the first values of those before it."""
        found: dict[str, list[str]] = {}
        for variable in self.content["templating"]["list"]:
            if match := _LABEL_VALUES.fullmatch(variable.get("definition", "")):
                series = _filled(match[1], {name: values[0] for name, values in found.items()})
                found[variable["name"]] = source.ask(f"label/{match[2]}/values", **{"match[]": series})
                assert found[variable["name"]], f"the variable {variable['name']} has no value: {series}"
        return found

    def all_of(self, name: str) -> str:
        """Return what stands for all values of a variable."""
        [variable] = [one for one in self.content["templating"]["list"] if one["name"] == name]
        return str(variable["allValue"])


def _filled(text: str, variables: Mapping[str, str]) -> str:
    for name, value in {**variables, "__rate_interval": RATE_INTERVAL}.items():
        text = re.sub(rf"\${name}\b", value.replace("\\", r"\\"), text)
    assert "$" not in text, f"a variable is left: {text}"
    return text
