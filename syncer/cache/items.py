"""The undecoded items of lists and watches of a resource."""

from syncer.api.objects import Json, Key, Obj, Resource
from syncer.clusters import codec


class Items:
    """Decodes the items of a resource; unusable ones are returned without their contents."""

    __slots__ = ("_ahead", "_api_version", "_group", "_kind", "_namespaced")

    def __init__(self, resource: Resource) -> None:
        # Compared with each item.
        self._kind = resource.kind
        self._api_version = resource.api_version
        self._namespaced = resource.namespaced
        self._group = resource.group
        #: A large item that isn't processed yet, and its object.
        self._ahead: tuple[codec.Undecoded, Obj] | None = None

    def head(self, raw: codec.Undecoded, found: codec.Head | None = None) -> codec.Head:
        """Return the identity of an item; ``found`` is the identity if it was read already.

        Raises:
            DecodeError: The item has no identity, or one that can't be of this collection.
        """
        head = found or codec.head(raw)
        is_of_kind = head.kind == self._kind or not head.kind
        if is_of_kind and bool(head.key.namespace) is self._namespaced:
            return head
        raise codec.DecodeError("it is of another kind, or lacks a namespace, or has one")

    def read_ahead(self, raw: codec.Undecoded) -> None:
        """Decode a large item that is processed next, so that other tasks may run in between."""
        try:
            self._ahead = raw, codec.observed(raw)
        except codec.DecodeError:
            self._ahead = None  # the error is raised when the item is processed

    def forget_ahead(self) -> None:
        """Forget the object that was decoded ahead: its item was processed, with or without it."""
        self._ahead = None

    def decoded(self, key: Key, raw: codec.Undecoded) -> tuple[Obj, bytes]:
        """Return the object of an item with its JSON, for :meth:`.Store.keep`.

        An object that can't be used is without its contents. The JSON is empty unless the object
        was decoded from it just now.

        Raises:
            DecodeError: Not even its name is readable.
        """
        text = b""
        try:
            if self._ahead is not None and self._ahead[0] is raw:
                # Decoded ahead, it may be without contents already.
                obj = self._ahead[1]
                self._ahead = None
            else:
                obj, text = codec.lean_with_text(raw)
            codec.check(obj, key)
            api_version = obj.get("apiVersion")
            if api_version != self._api_version and not self._is_of_group(api_version):
                raise codec.DecodeError("it is of another API group than was asked for")
        except codec.DecodeError as error:
            return self.without_contents(key, raw, error), b""
        return obj, text

    def without_contents(self, key: Key, raw: codec.Undecoded, error: Exception) -> Obj:
        """Return an object without its contents, with the key that identified it in the list.

        The metadata of a malformed object may have another one, too.

        Raises:
            DecodeError: Not even its name is readable.
        """
        obj = codec.without_contents(raw, error)
        obj["metadata"] |= {"name": key.name, "namespace": key.namespace}
        return obj

    def _is_of_group(self, api_version: Json) -> bool:
        """Return True for the apiVersion of an item that may be another version of the resource.

        Items of a list have no apiVersion.
        """
        if api_version is None:
            return True
        return isinstance(api_version, str) and api_version.rpartition("/")[0] == self._group
