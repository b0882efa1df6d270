"""Log lines: their form, and the contents that never appear in them."""

import ast
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncer.api import Key, Side
from syncer.observe import logs


class Terminal(io.StringIO):
    """A stream that says that a person looks at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    logs.configure()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_line_is_json_where_no_person_looks() -> None:
    stream = io.StringIO()
    log = logs.get_logger("syncer.daemon.runner")
    logs.configure("info", "auto", stream=stream)
    log.bind(syncer="pods").info("written", key=Key("shop", "web"), side=Side.HOST, seconds=0.5)
    [line] = lines(stream)
    assert list(line)[:3] == ["time", "level", "message"]
    assert str(line.pop("time")).endswith("Z")
    expected = {"level": "info", "message": "written", "module": "daemon.runner", "syncer": "pods"}
    assert line == expected | {"key": "shop/web", "side": "host", "seconds": 0.5}


def test_terminal_gets_text_in_colour_unless_no_color_is_set() -> None:
    coloured, plain = Terminal(), Terminal()
    log = logs.get_logger("syncer.x")
    logs.configure("info", "auto", stream=coloured, environ={})
    log.info("hello", key="a/b")
    logs.configure("info", "auto", stream=plain, environ={"NO_COLOR": "1"})
    log.info("hello", key="a/b")
    assert "\x1b[" in coloured.getvalue()
    assert "\x1b[" not in plain.getvalue()
    assert "hello" in plain.getvalue()
    assert "key=a/b" in plain.getvalue()


def test_level_below_the_configured_is_not_shown() -> None:
    stream = io.StringIO()
    log = logs.get_logger("syncer.x")
    logs.configure("warning", "json", stream=stream)
    for write in (log.debug, log.info, log.warning, log.error):
        write("line")
    assert [line["level"] for line in lines(stream)] == ["warning", "error"]
    logs.configure("debug", "json", stream=stream)
    log.debug("line")
    assert lines(stream)[-1]["level"] == "debug"


def test_content_of_an_object_is_never_shown() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream=stream)
    secret = {"data": {"password": "aHVudGVyMg=="}}
    log = logs.get_logger("syncer.x")
    log.info("line", obj=secret, raw=b"aHVudGVyMg==", objs=[secret, "fine"], error="x" * 5000)
    assert "aHVudGVyMg" not in stream.getvalue()
    [line] = lines(stream)
    assert line["obj"] == "<dict of 1>"
    assert line["objs"] == "<dict of 1>, fine"
    assert len(str(line["error"])) < 2100


def test_exception_brings_its_traceback() -> None:
    stream = io.StringIO()
    logs.configure("info", "json", stream=stream)
    try:
        Key.parse(3)  # type: ignore[arg-type]
    except AttributeError:
        logs.get_logger("syncer.x").exception("unexpected", key="a/b")
    [line] = lines(stream)
    assert "AttributeError" in str(line["exception"])
    assert line["level"] == "error"


#: A title for the window, a cleared screen, the same in one byte, text that runs backwards, and another line.
CONTROLS = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\r\n2026-01-01 [info] forged"


def test_terminal_gets_no_control_characters_of_others() -> None:
    stream = io.StringIO()
    logs.configure("info", "console", stream=stream)
    log = logs.get_logger("syncer.x")
    log.info("connected", version=f"v1.36.0{CONTROLS.replace(' ', '')}")
    logging.getLogger("kubernetes.client.rest").warning("retry %s", CONTROLS)
    try:
        raise ValueError(CONTROLS)
    except ValueError:
        log.exception("unexpected", key="a/b")
    text = stream.getvalue()
    assert [each for each in text if not (each.isprintable() or each == "\n")] == []
    assert "\\x1b]0;owned" in text, "it is escaped, not lost"
    assert "Traceback (most recent call last):\n" in text
    lines_before = text.partition("Traceback")[0].splitlines()
    assert [line for line in lines_before if line.startswith("2026-01-01")] == [], "no line is forged"


def test_line_of_a_library_looks_the_same_and_is_never_below_info() -> None:
    stream = io.StringIO()
    logs.configure("debug", "json", stream=stream)
    logging.getLogger("kubernetes.client.rest").debug("response body: secret")
    logging.getLogger("kubernetes.client.rest").warning("retry %d", 3)
    [line] = lines(stream)
    assert line["message"] == "retry 3"
    assert line["module"] == "kubernetes.client.rest"
    assert line["level"] == "warning"


def test_line_follows_standard_error_when_it_changes(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logs.get_logger("syncer.x").info("here")
    assert json.loads(capsys.readouterr().err)["message"] == "here"


def test_rich_is_not_loaded() -> None:
    check = "import sys, syncer.observe.logs; sys.exit('rich' in sys.modules or 'rich.console' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=600).returncode == 0


def log_lines(source: str) -> Iterator[tuple[int, set[str | None]]]:
    """Line and keys of each call of ``log``; None stands for keys that are given as a mapping."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("log")), args=[_, *_]):
                yield node.lineno, {keyword.arg for keyword in node.keywords}


def test_line_about_a_virtual_cluster_names_it() -> None:
    folder = Path(logs.__file__).parents[1]
    files = [path for part in ("engine", "observe") for path in sorted((folder / part).rglob("*.py"))]
    found = [(path.name, line, keys) for path in files for line, keys in log_lines(path.read_text())]
    assert len(found) > 20
    concerned = {"syncer", "key", "side", "what"}
    assert [(name, line) for name, line, keys in found if keys & concerned and not keys & {"cluster", None}] == []
