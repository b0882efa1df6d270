"""The base of every role: an abstract class that a syncer has by inheritance alone."""

from abc import ABCMeta


class _Inherited(ABCMeta):
    """Roles can't be registered for classes that don't inherit them, so asking for one needs no look at a registry.

    A decision asks a dozen times; this takes a twentieth off its cost.
    """

    __instancecheck__ = type.__instancecheck__


class Role(metaclass=_Inherited):
    """Something that a syncer can be asked."""
