"""The debug bundle: what a support engineer asks for first, in one archive without secrets."""

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import yaml

from syncer.api import SyncerError
from syncer.cli import daemon, show
from syncer.cli.about import about
from syncer.cli.doctor import examined
from syncer.cli.listing import OUT_OF_STEP, pages
from syncer.cli.redaction import (
    HIDDEN,
    options_without_secrets,
    values_without_secrets,
    without_secrets,
)
from syncer.cli.without_daemon import decided_here
from syncer.config import Loaded
from syncer.config.list_form import LIST, SECRETS
from syncer.daemon.answer_once import list_once
from syncer.daemon.pages.monitoring import MOST_BYTES, first_lines
from syncer.daemon.roles import roles_of
from syncer.translate.times import written
from syncer.version import VERSION

#: Timeout for the first answer of the daemon, in seconds: one that hangs is asked nothing further.
FIRST_SECONDS = 30.0

#: The folder in the archive.
_FOLDER = "syncer-debug"
_INDEX = "index.txt"
_QUERY = {"states": ",".join(OUT_OF_STEP)}
#: Kinds with contents that are nobody's but the tenant's, and that a refusal may quote.
_CONFIDENTIAL = ("ConfigMap", "Secret")
#: The class of the one refusal of such objects that is all in our own words.
_OWN_WORDS = "NameTaken"
_HIDDEN = f"""\
Not in any file: contents of Secrets and ConfigMaps, kubeconfigs, tokens, passwords, keys, client
certificates, and credentials for proxies. "{HIDDEN}" stands for an option or a part of a message
that may be one of these, and for the reason why a Secret or ConfigMap was refused, which may quote
it. Names of objects, namespaces and users, paths of files and addresses of servers are shown: look
through the files before you hand them on. The daemon's log isn't here: `kubectl logs` has it.
"""


class Content(NamedTuple):
    """What a file has, and a note about what it lacks."""

    text: str
    note: str = ""


class BundleFile(NamedTuple):
    """A file of a bundle. Without a content, the note says why."""

    name: str
    about: str
    text: str | None
    note: str

    @property
    def is_missing(self) -> bool:
        """True if there was nothing to collect."""
        return self.text is None


def collected(found: Loaded) -> list[BundleFile]:
    """Return the files of a bundle, but for the index, about the selected virtual cluster or all.

    What can't be collected is missing in it, with the reason.
    """
    silence = _silence(found)

    def asked(path: str) -> Any:
        if silence:
            raise daemon.Unanswered(silence)
        return daemon.ask(found, "GET", path)

    def rows(path: str) -> Content:
        return _rows(asked(path))

    def text(path: str) -> Content:
        answer = asked(path)
        return _text(answer["text"], answer["leftOut"])

    def objects() -> Content:
        return _objects(found, has_daemon=not silence)

    parts: Sequence[tuple[str, str, Callable[[], Content]]] = (
        ("version.json", "the version of this command, and what it runs on", _version),
        ("config.json", "the configuration in force", partial(_config, found)),
        ("clusters.json", "virtual clusters, as in `syncer clusters`", partial(rows, "/clusters")),
        ("status.json", "the syncers, as in `syncer status`", partial(rows, "/status")),
        ("list.json", "what isn't in step, as in `syncer list`", objects),
        ("doctor.json", "the checks of `syncer doctor`", partial(_checks, found)),
        ("rbac.yaml", "the rights that `syncer rbac` prints", partial(_rights, found)),
        ("metrics.txt", "the daemon's metrics", partial(text, "/metrics")),
        ("readyz.txt", "the daemon's /readyz?verbose", partial(text, "/readyz")),
        ("livez.txt", "the daemon's /livez?verbose", partial(text, "/livez")),
    )
    return [_file(*part) for part in parts]


def archive(found: Loaded, files: Iterable[BundleFile], made: datetime) -> bytes:
    """Return the bundle, a tar archive with gzip, with an index of the files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in _contents(found, list(files), made):
            content = text.encode()
            member = tarfile.TarInfo(f"{_FOLDER}/{name}")
            member.size = len(content)
            member.mode = 0o600
            member.mtime = int(made.timestamp())
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _contents(
    found: Loaded, files: Sequence[BundleFile], made: datetime
) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file that is there, the index first."""
    yield _INDEX, _index(found, files, made)
    for file in files:
        if file.text is not None:
            yield file.name, file.text


def _index(found: Loaded, files: Iterable[BundleFile], made: datetime) -> str:
    subject = "all virtual clusters of the daemon"
    if found.chosen:
        subject = f"virtual cluster {found.chosen}"
    lines = [f"Debug bundle of {subject}, made at {written(made)} by syncer {VERSION}", ""]
    for file in files:
        lines.append(f"{file.name:<16}{file.about}")
        if file.is_missing:
            lines.append(f"{'':<16}MISSING: {file.note}")
        elif file.note:
            lines.append(f"{'':<16}{file.note}")
    return "\n".join([*lines, "", _HIDDEN])


def _file(name: str, about: str, collect: Callable[[], Content]) -> BundleFile:
    try:
        content = collect()
    except SyncerError as error:
        why = _why(error)
    except Exception as error:  # noqa: BLE001 — the other files may say why
        why = f"it can't be collected: {type(error).__name__}"
    else:
        return BundleFile(name, about, content.text, _note(content.note))
    return BundleFile(name, about, None, _note(why))


def _note(text: str) -> str:
    return show.one_line(without_secrets(text))


def _silence(found: Loaded) -> str:
    """Return why no daemon answers; ``""`` if one does."""
    try:
        daemon.ask(found, "GET", "/livez", seconds=FIRST_SECONDS)
    except (daemon.NoDaemon, daemon.Unanswered) as error:
        return _why(error)
    return ""


def _why(error: SyncerError) -> str:
    """Return the message of an error, without the path of the control socket, which names the first
    virtual cluster.
    """
    cause = error.__cause__
    if cause is None or not isinstance(error, daemon.NoDaemon | daemon.Unanswered):
        return str(error)
    return f"no daemon answers at the control socket ({str(cause) or type(cause).__name__})"


# -- what is collected -----------------------------------------------------------------------------


def _version() -> Content:
    return _json(about())


def _config(found: Loaded) -> Content:
    options = found.config.model_dump(mode="json", by_alias=True)
    if found.chosen:
        options[LIST] = [each for each in options[LIST] if each["name"] == found.chosen]
        if options[LIST]:
            options[SECRETS] = []
    return _json(options_without_secrets(options))


def _checks(found: Loaded) -> Content:
    return _rows([each.json() for each in examined(found)])


def _rights(found: Loaded) -> Content:
    """Return the roles; of the daemon's own, those of all virtual clusters can't be told apart."""
    only = None
    notes: list[str] = []
    if found.chosen:
        only = "cluster"
        notes.append("without the daemon's own, which all virtual clusters share")
    roles = roles_of(found.config, only=only, chosen=found.chosen)
    return _noted(_text(yaml.safe_dump_all(roles, sort_keys=False)), notes)


def _objects(found: Loaded, *, has_daemon: bool) -> Content:
    """Return the objects that aren't in step, by the daemon or else decided here."""
    unlisted: dict[str, str] = {}
    if has_daemon:
        content = _rows(_of_daemon(found, unlisted))
    else:
        page = decided_here(found, partial(list_once, query=_QUERY))
        unlisted |= page.unlisted
        content = _rows(map(_object, page.items))
    return _noted(content, [f"not listed: {name}: {why}" for name, why in unlisted.items()])


def _of_daemon(found: Loaded, unlisted: dict[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the daemon's objects, and at the end put into ``unlisted`` what it doesn't list."""
    for page in pages(found, _QUERY):
        yield from map(_object, page["items"])
        unlisted |= page["unlisted"]


def _object(row: Mapping[str, Any]) -> Mapping[str, Any]:
    is_quoted = row.get("class", "") not in ("", _OWN_WORDS)
    if is_quoted and row["kind"] in _CONFIDENTIAL:
        return {**row, "reason": HIDDEN}
    return row


# -- their forms -----------------------------------------------------------------------------------


def _json(data: Mapping[str, Any]) -> Content:
    return _text(f"{json.dumps(values_without_secrets(data), indent=2)}\n")


def _text(text: str, left_out: int = 0) -> Content:
    """Return a text; ``left_out`` is the size of what it lacks already, in bytes."""
    cut = first_lines(without_secrets(text))
    left_out += cut.left_out
    note = ""
    if left_out:
        note = f"cut: {left_out} bytes more are left out; --cluster NAME makes it smaller"
    return Content(cut.text, note)


def _noted(content: Content, notes: Iterable[str]) -> Content:
    """Return a content with further notes."""
    return content._replace(note="; ".join(filter(None, [content.note, *notes])))


def _rows(rows: Iterable[Mapping[str, Any]]) -> Content:
    """Return a JSON array with a line for each row, of which the first that fit are taken."""
    lines: list[str] = []
    size = 0
    note = ""
    for row in rows:
        line = json.dumps(values_without_secrets(row))
        size += len(line) + len(",\n")
        if size > MOST_BYTES:
            note = f"cut after {len(lines)} rows; --cluster NAME makes it smaller"
            break
        lines.append(line)
    return Content("[\n{}\n]\n".format(",\n".join(lines)), note)
