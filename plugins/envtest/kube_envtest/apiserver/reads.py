"""get, list and watch."""

import random
from collections.abc import Sequence
from typing import Any

from kube_envtest.apiserver.errors import (
    EXPIRED_CONTINUE,
    bad_request,
    cause,
    expired,
    invalid,
    not_found,
    too_large,
    unhandled,
)
from kube_envtest.apiserver.paging import Page, read_token, write_token
from kube_envtest.apiserver.request import Call, Response, read_accept
from kube_envtest.apiserver.selection import Selection, selection_of
from kube_envtest.apiserver.storage import Entry, Storage, keys_in
from kube_envtest.apiserver.views import View, view_of
from kube_envtest.apiserver.watch import Watch, WatchOptions

Obj = dict[str, Any]

#: Seconds after which the server ends a watch without a limit; drawn up to twice that. Source:
#: ``--min-request-timeout`` of kube-apiserver.
WATCH_SECONDS = 1800


class Reader:
    """Answers reading requests."""

    def __init__(self, storage: Storage, chance: random.Random) -> None:
        self._storage = storage
        self._chance = chance

    def view(self, call: Call, now: float) -> View:
        """Return the form that the client accepts."""
        accept = read_accept(call.request.accept)
        return view_of(call.type, accept, call.query.get("includeObject", ""), now)

    def entry(self, call: Call) -> Entry:
        """Return the object of the path.

        Raises:
            ApiError: NotFound.
        """
        found = self._storage.get(call.table, call.key)
        if found is None:
            raise not_found(call.type, call.name)
        return found

    def get(self, call: Call, now: float) -> Response:
        """Return an object. A resourceVersion in the future is refused."""
        if call.query.get("resourceVersion"):
            _check_reached(_revision(call.query["resourceVersion"]), self._storage.revision)
        return Response(200, self.view(call, now).one(self.entry(call)))

    def _latest(self, call: Call) -> int:
        """Return the latest revision that lists and watches see."""
        if call.until is None:
            return self._storage.revision
        if call.until < self._storage.oldest(call.table):
            raise expired("The resourceVersion that this server has is compacted.")
        return call.until

    def listing(self, call: Call, now: float) -> Response:
        """Return a collection or a page of it."""
        check_list(call)
        limit = _number(call, "limit")
        page = self._page(call)
        selection = selection_of(call)
        chosen, rest = self._choose(page, selection, limit)
        metadata: Obj = {"resourceVersion": str(page.revision)}
        if rest:
            metadata["continue"] = write_token(page, chosen[-1].key)
            if selection.everything:
                metadata["remainingItemCount"] = rest
        return Response(200, self.view(call, now).many(chosen, metadata))

    def _page(self, call: Call) -> Page:
        token = call.query.get("continue")
        current = self._latest(call)
        if token:
            page = read_token(token)
            return self._still_there(call, page) if page.revision > 0 else Page(call.table, current, page.after)
        asked = _revision(call.query.get("resourceVersion", ""))
        _check_reached(asked, current)
        if call.query.get("resourceVersionMatch") != "Exact":
            return Page(call.table, current)
        if asked < self._storage.oldest(call.table):
            raise expired("The resourceVersion for the provided list is too old.")
        return Page(call.table, asked)

    def _still_there(self, call: Call, page: Page) -> Page:
        if page.revision < self._storage.oldest(call.table):
            inconsistent = write_token(Page(call.table, -1), page.after)
            raise expired(EXPIRED_CONTINUE, continue_token=inconsistent)
        return Page(call.table, page.revision, page.after)

    def _choose(self, page: Page, selection: Selection, limit: int) -> tuple[list[Entry], int]:
        """Return the objects of a page, and the number of objects after it."""
        keys, entries = self._storage.table(page.table).at(page.revision)
        wanted: Sequence[str] = list(keys_in(keys, selection.namespace))
        if page.after:
            wanted = [key for key in wanted if key > page.after]
        if selection.everything:
            chosen_keys = wanted
            if limit:
                chosen_keys = wanted[:limit]
            chosen = [entries[key] for key in chosen_keys]
            return chosen, len(wanted) - len(chosen)
        matching = [entries[key] for key in wanted if selection.chooses(entries[key])]
        chosen = matching[:limit] if limit else matching
        return chosen, len(matching) - len(chosen)

    def matching(self, call: Call) -> list[Entry]:
        """Return the objects of a deletecollection."""
        return self._choose(Page(call.table, self._storage.revision), selection_of(call), 0)[0]

    def watch(self, call: Call, now: float) -> Watch:
        """Start a watch."""
        initial = call.query.get("sendInitialEvents", "") == "true"
        check_initial(call, given="sendInitialEvents" in call.query)
        text = call.query.get("resourceVersion", "")
        if text and not text.isdigit():
            raise unhandled(bad_revision(text))
        revision = _revision(text)
        latest = self._latest(call)
        if initial:
            _check_reached(revision, latest)
        bookmarks = call.query.get("allowWatchBookmarks", "") in ("true", "1")
        seconds = _number(call, "timeoutSeconds") or self._chance.uniform(WATCH_SECONDS, 2 * WATCH_SECONDS)
        from_now = initial or (revision == 0 and call.query.get("sendInitialEvents") != "false")
        start = revision or latest
        options = WatchOptions(start, seconds, bookmarks, from_now, initial and bookmarks, call.until)
        return Watch(self._storage, call.table, selection_of(call), self.view(call, now), options)


def _check_reached(asked: int, latest: int) -> None:
    if asked > latest:
        raise too_large(asked, latest)


def check_list(call: Call) -> None:
    """Refuse invalid combinations of resourceVersion, resourceVersionMatch and continue.

    Source: ``ValidateListOptions`` of apimachinery.
    """
    match = call.query.get("resourceVersionMatch", "")
    version = call.query.get("resourceVersion", "")
    if call.query.get("sendInitialEvents"):
        raise _invalid_option("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")
    if match:
        _check_match(call, match, version)
    elif call.query.get("continue") and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def _check_match(call: Call, match: str, version: str) -> None:
    field = "resourceVersionMatch"
    if not version:
        raise _invalid_option(field, f"Forbidden: {field} is forbidden unless resourceVersion is provided")
    if call.query.get("continue"):
        raise _invalid_option(field, f"Forbidden: {field} is forbidden when continue is provided")
    if match not in ("Exact", "NotOlderThan"):
        text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        raise _invalid_option(field, text)
    if match == "Exact" and version == "0":
        text = f'Forbidden: {field} "Exact" is forbidden for resourceVersion "0"'
        raise _invalid_option(field, text)


def check_initial(call: Call, *, given: bool) -> None:
    """Check that ``sendInitialEvents`` and ``resourceVersionMatch=NotOlderThan`` are used together."""
    match = call.query.get("resourceVersionMatch", "")
    if not given and match:
        text = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _invalid_option("resourceVersionMatch", text)
    if given and match != "NotOlderThan":
        text = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _invalid_option("resourceVersionMatch", text)


def _invalid_option(field: str, text: str) -> Exception:
    from kube_envtest.apiserver.resources import ResourceType

    options = ResourceType("meta.k8s.io", "v1", "ListOptions", "listoptions")
    reason = "FieldValueForbidden" if text.startswith("Forbidden") else "FieldValueNotSupported"
    return invalid(options, "", [cause(field, text, reason)])


def _revision(text: str) -> int:
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f"invalid resource version: {bad_revision(text)}")
    return int(text)


def bad_revision(text: str) -> str:
    """Return the message about a resourceVersion that is not a number."""
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _number(call: Call, name: str) -> int:
    text = call.query.get(name, "")
    if not text.lstrip("-").isdigit():
        if text:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        return 0
    return max(int(text), 0)
