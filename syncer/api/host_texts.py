"""Texts of the host for tenants: with virtual names in place of the host's, and without the host
namespace.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise

from syncer.api.context import Context, Settings
from syncer.api.errors import Refused
from syncer.api.objects import LONGEST_NAME, Json, Key, Resource
from syncer.api.texts import shortened

#: Stands for the host namespace, which tenants don't know, and for an object there that isn't
#: theirs.
HOST = "<host>"
#: Characters of messages in an object that are searched. Further ones are left out: a tenant may
#: influence the host's messages.
MOST_TEXT = 1 << 18
#: Number of different words in them that are looked up; a message with further ones is left out.
MOST_WORDS = 500

#: The ends of the names of fields with texts, in small letters; and of those that have one if there
#: is a space in it.
_TEXTS = ("message", "error")
_REASON = "reason"
#: All of them.
_ENDS = (*_TEXTS, _REASON)
#: The container's own last words, which aren't the host's.
_OWN = "terminated"
#: The kinds with the most widely valid host names: one in namespaces, and one in none.
_IN_NAMESPACES = Resource("v1", "ConfigMap", "configmaps")
_IN_NONE = Resource("v1", "Namespace", "namespaces", namespaced=False)
#: Names of objects and namespaces, of which several are in a path, and a name and its namespace in
#: a DNS name. The image of a container isn't the host's.
_WORDS = (
    r'image "[^"]*"|'
    r"(?<![A-Za-z0-9.-])(?:[a-z0-9]+(?:(?:[.-]+|/)[a-z0-9]+)+|{plain})(?![A-Za-z0-9-])"
)
_SEPARATOR = re.compile("[./-]")
#: The labels of a DNS name among which is a namespace: ``db-0.db.shop.svc``.
_LABELS = 3


def _no_original(host_key: Key) -> Key | None:
    return None


class HostNames:
    """The host names in texts about an object of a virtual cluster.

    Names are found by the name translator, in ``known``, and by the marks of copies that the cache
    has. The names of other tenants' objects are left as they are, and dropped behind the host
    namespace.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        resource: Resource = _IN_NAMESPACES,
        namespace: str = "",
        known: Callable[[], Mapping[str, str]] = dict,
        original: Callable[[Key], Key | None] = _no_original,
    ) -> None:
        """Prepare the translation; nothing is looked up before there is a text.

        Args:
            settings: The settings of the virtual cluster.
            resource: The host resource of the object.
            namespace: The object's virtual namespace, which stands for the host namespace where
                that is alone; ``""`` if there is none.
            known: Returns virtual names by host name.
            original: Returns the virtual key of the object that has its copy at a host key, if the
                cache has that.
        """
        self._settings = settings
        self._namespace = namespace or HOST
        self._load = known
        self._original = original
        self._resource = resource
        self._homes: dict[str, bool] = {}
        self._keys: dict[Key, Key | None] = {}
        self._words: dict[str, str] = {}
        self._room = MOST_TEXT
        self._looks = MOST_WORDS

    def virtual(self, text: str) -> str:
        """Return a text with virtual names. It is cut if it is too long."""
        text = shortened(text)
        self._room -= len(text)
        if self._room < 0:
            return "…"
        try:
            return self._pattern.sub(self._run, text)
        except _TooManyWordsError:
            return "…"

    def in_messages(self, status: Json) -> Json:
        """Return a status with virtual names in its texts, at any depth.

        The texts are those of fields such as ``message``, ``lastError`` and ``failureReason``.
        Parts without texts are shared.
        """
        messages = dict.fromkeys(_messages(status))
        translated = {message: self.virtual(message) for message in messages}
        if all(message == virtual for message, virtual in translated.items()):
            return status
        return _replaced(status, translated)

    # -- inside ------------------------------------------------------------------------------------

    @cached_property
    def _kinds(self) -> tuple[Resource, ...]:
        return tuple(dict.fromkeys((self._resource, _IN_NAMESPACES, _IN_NONE)))

    @cached_property
    def _known(self) -> Mapping[str, str]:
        return self._load()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """The words that may be names.

        These are words with a separator in them, and plain ones that are known to be names.
        """
        names = [name for name, virtual in self._known.items() if name != virtual]
        candidates = (self._settings.host_namespace, *names)
        plain = [re.escape(each) for each in candidates if each and not _SEPARATOR.search(each)]
        # Without plain names, the alternative matches nothing.
        return re.compile(_WORDS.replace("{plain}", "|".join(plain) or "(?!)"))

    def _run(self, found: re.Match[str]) -> str:
        """Translate a word, or the words of a path."""
        text = found[0]
        if text.startswith('image "'):
            return text
        parts = text.split("/")
        is_url = found.string.endswith("//", 0, found.start())
        result: list[str] = []
        while parts:
            part = parts.pop(0)
            if result or not is_url:
                pair = self._pair(part, parts, is_alone=not result and len(parts) == 1)
                if pair is not None:
                    result += pair
                    continue
            elif part == self._settings.host_namespace:
                result.append(part)  # a host of the network
                continue
            result.append(self._word(part))
        return "/".join(result)

    def _pair(self, part: str, further: list[str], *, is_alone: bool) -> list[str] | None:
        """Return a namespace and the name behind it as virtual names.

        The name is taken from ``further``. None if the part is no namespace of the virtual cluster
        on the host.
        """
        if not further or not self._is_home(part):
            return None
        key = self._key(Key(part, further[0]))
        if key is not None:
            further.pop(0)
            return [key.namespace, key.name]
        if is_alone:
            further.pop(0)
            return [HOST]
        return None

    def _look(self) -> None:
        """Count a word that is looked up.

        Raises:
            _TooManyWordsError: There were too many.
        """
        if self._looks == 0:
            raise _TooManyWordsError
        self._looks -= 1

    def _is_home(self, namespace: str) -> bool:
        """Return True for a host namespace of the virtual cluster."""
        if namespace == self._settings.host_namespace:
            return True
        if namespace not in self._homes:
            self._look()
            found = self._settings.names.to_virtual(_IN_NONE, Key("", namespace))
            self._homes[namespace] = found is not None and found.name != namespace
        return self._homes[namespace]

    def _key(self, host_key: Key) -> Key | None:
        """Return the virtual key of a host key in a namespace."""
        if host_key not in self._keys:
            self._look()
            self._keys[host_key] = self._looked_up_key(host_key)
        return self._keys[host_key]

    def _looked_up_key(self, host_key: Key) -> Key | None:
        known = self._known.get(str(host_key))
        if known:
            return Key.parse(known)
        for kind in self._kinds[:-1]:
            if kind.namespaced:
                key = self._settings.names.to_virtual(kind, host_key)
                if key is not None:
                    return key
        return self._original(host_key)

    def _word(self, word: str) -> str:
        if word not in self._words:
            self._look()
            self._words[word] = self._looked_up(word)
        return self._words[word]

    def _looked_up(self, word: str) -> str:
        if len(word) > LONGEST_NAME:
            return word
        if word in self._known:
            return self._known[word]
        home = self._settings.host_namespace
        if word == home:
            return self._namespace
        for kind in self._kinds:
            namespace = home if kind.namespaced else ""
            host_key = Key(namespace, word)
            key = self._settings.names.to_virtual(kind, host_key)
            if key is not None and key.name != word:
                return key.name
        for namespace in (home, ""):
            key = self._original(Key(namespace, word))
            if key is not None:
                return key.name
        return self._dns_name(word) if "." in word else word

    def _dns_name(self, word: str) -> str:
        """Return a DNS name such as ``web.shop.svc`` with a virtual name and namespace."""
        labels = word.split(".")
        for index, (name, namespace) in enumerate(pairwise(labels[:_LABELS])):
            if not self._is_home(namespace):
                continue
            before = labels[:index]
            behind = labels[index + 2 :]
            key = self._key(Key(namespace, name))
            if key is not None:
                return ".".join([*before, key.name, key.namespace, *behind])
            if behind[:1] == ["svc"]:
                return ".".join([*before, name, HOST, *behind])
        return word


def host_names(
    ctx: Context,
    key: Key,
    host_key: Key,
    named: Callable[[], Iterable[tuple[Resource, Key]]] = tuple,
) -> HostNames:
    """Return the host names in texts about a virtual object.

    Args:
        ctx: The context of the decision.
        key: The virtual key of the object.
        host_key: The host key of the object.
        named: Returns the objects that it names, by resource and virtual key. It is called when
            there is a text.
    """

    def known() -> dict[str, str]:
        names: dict[str, str] = {}
        for resource, each in named():
            with suppress(Refused):  # it has no name on the host
                copy = ctx.names.to_host(resource, each)
                names[copy.name] = each.name
                names[str(copy)] = str(each)
        names[host_key.name] = key.name
        names[str(host_key)] = str(key)
        return names

    return HostNames(
        ctx.settings,
        resource=ctx.host_resource,
        namespace=key.namespace,
        known=known,
        original=ctx.reader.original,
    )


class _TooManyWordsError(Exception):
    """A text has more different words than are looked up."""


def _is_text(name: str, value: str) -> bool:
    ending = name.lower()
    return ending.endswith(_TEXTS) or (" " in value and ending.endswith(_REASON))


def _messages(status: Json) -> list[str]:
    """Return all texts in a status, those of lists in order."""
    found: list[str] = []
    rest = [status]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            for name, each in reversed(value.items()):
                if isinstance(each, str):
                    # Most have other names, and a call for each takes a third of the time.
                    if name.lower().endswith(_ENDS) and _is_text(name, each):
                        found.append(each)
                elif each and name != _OWN:
                    rest.append(each)
        elif isinstance(value, list):
            rest += reversed(value)
    return found


def _replaced(value: Json, translated: Mapping[str, str]) -> Json:
    """Return a status with translated texts."""
    if isinstance(value, list):
        return [_replaced(each, translated) for each in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Json] = {}
    for name, each in value.items():
        if isinstance(each, str):
            result[name] = translated[each] if _is_text(name, each) else each
        elif name == _OWN:
            result[name] = each
        else:
            result[name] = _replaced(each, translated)
    return result
