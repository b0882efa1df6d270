"""Count what one change costs that concerns many objects; JSON lines.

Each scene is a hostile tenant's: a change of one object wakes many others, and each of these is
decided from much. For two numbers of woken objects, a line has the calls of Python functions and of
C functions, which fluctuate less than time does: those of the change itself, as it is seen, and of
the decisions that it wakes. `an_object` is that of a further one: the difference of both lines by
the difference of the objects. The command ends with 1 if that is more than the scene allows, or if
the change wakes an object more than once.
"""

import argparse
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from types import FrameType
from typing import Any, Self

from syncer.api import Obj, key_of
from syncer.resources.kinds import NETWORK_POLICIES
from syncer.testing.merge import merged
from syncer.testing.objects import build, endpointslice, host_copy, pod, serviceaccount
from syncer.testing.world import World

#: The policies of a namespace, and the expressions of each: together nearly as many as are
#: compared, and more.
POLICIES = 100
FEW = 49
MANY = 520
#: The addresses of a slice, and the ranges that the operator allows.
ADDRESSES = 1000
RANGES = [f"2001:db8:{number:x}::/48" for number in range(1, 21)]
#: The address that all slices have.
COMMON = "2001:db8::1"


@dataclass(frozen=True)
class Scene:
    """A world in which a change wakes so many objects."""

    #: Returns the world before the change.
    before: Callable[[int], World]
    #: Makes the change.
    change: Callable[[World], object]
    #: The numbers of objects that are woken.
    numbers: tuple[int, int]
    #: Most calls for a further object: half as many again as CPython 3.11 made, which were 1,223,
    #: 16,700, 1,224 and 57,000. A Pod whose labels are compared with all policies takes 15,000 of
    #: them.
    most: float


def policy(number: int, expressions: int) -> Obj:
    """Return a policy whose every expression is compared, as all of them hold."""
    absent = [
        {"key": f"k{number}-{each}", "operator": "DoesNotExist"} for each in range(expressions)
    ]
    spec = {"podSelector": {"matchExpressions": absent}, "policyTypes": ["Ingress"]}
    return build(NETWORK_POLICIES, f"p{number}", spec=spec)


def policies(expressions: int, *, is_alike: bool) -> Callable[[int], World]:
    """Return a function that makes a namespace with many policies and Pods.

    Unless the Pods are alike, each has a label of its own that a policy names.
    """

    def before(number: int) -> World:
        world = World(config={"sync": {"toHost": {"networkPolicies": {"enabled": True}}}})
        pods = []
        for each in range(number):
            label = f"pod-{each}" if is_alike else f"k{POLICIES}-{each}"
            pods.append(pod(f"web-{each}", metadata={"labels": {label: ""}}))
        selectors = [policy(each, expressions) for each in range(POLICIES - 1)]
        world.given(virtual=[serviceaccount("default"), *pods, *selectors])
        world.settle("serviceaccounts", "shop/default")
        for made in pods:
            world.settle("pods", key_of(made))
        return world

    return before


def change_policy(world: World) -> World:
    """Add the last policy, which names labels of Pods."""
    return world.given(virtual=[policy(POLICIES, FEW)])


def slices(number: int) -> World:
    """Return a world with slices of addresses in another form than the host has."""
    world = World(config={"sync": {"toHost": {"endpointSlices": {"allowAddresses": RANGES}}}})
    made = []
    for each in range(number):
        others = [f"2001:DB8:{1 + end % 30:X}:0::{each:X}:{end:X}" for end in range(ADDRESSES - 1)]
        made.append(endpointslice(f"db-{each}", COMMON, *others, addressType="IPv6"))
    world.given(virtual=made)
    for each in range(number):
        world.settle("endpointslices", f"shop/db-{each}")
    return world


def change_address(world: World) -> World:
    """Let a Pod get the address that all slices have."""
    status = {"phase": "Running", "podIP": COMMON, "podIPs": [{"ip": COMMON}]}
    virtual = pod("db")
    return world.given(host=[merged(host_copy(virtual, spec=virtual["spec"]), {"status": status})])


SCENES = {
    "policies": Scene(policies(FEW, is_alike=True), change_policy, (50, 100), 1_900),
    "policies-of-different-pods": Scene(
        policies(FEW, is_alike=False), change_policy, (25, 49), 25_000
    ),
    "policies-with-too-many-expressions": Scene(
        policies(MANY, is_alike=True), change_policy, (50, 100), 1_900
    ),
    "slices": Scene(slices, change_address, (4, 8), 85_000),
}


class Calls:
    """Counts calls of functions while the block runs."""

    def __init__(self) -> None:
        self.number = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.number += 1


def counted(name: str, number: int) -> dict[str, int]:
    """Return what a change costs that wakes so many objects of a scene."""
    scene = SCENES[name]
    world = scene.before(number)
    world.woken()
    with Calls() as of_change:
        scene.change(world)
    woken = world.woken()
    with Calls() as of_decisions:
        for request in woken:
            world.pair.plan(request)
    return {
        "objects": number,
        "woken": len(woken),
        "change": of_change.number,
        "decisions": of_decisions.number,
    }


def main() -> None:
    """Print two lines for each scene; end with 1 if a further object takes more than is allowed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument(
        "scenes", nargs="*", default=list(SCENES), help=f"of {', '.join(SCENES)}; by default all"
    )
    is_too_much = False
    for name in parser.parse_args().scenes:
        scene = SCENES[name]
        # Each in a process of its own, or the caches of one would serve the other.
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
            few, many = processes.map(partial(counted, name), scene.numbers)
        further = many["objects"] - few["objects"]
        an_object = round((many["decisions"] - few["decisions"]) / further)
        for figures in (few, many):
            print(json.dumps({"bench": "woken", "scene": name, **figures}), flush=True)
        print(json.dumps({"bench": "woken", "scene": name, "an_object": an_object}), flush=True)
        is_too_much = is_too_much or an_object > scene.most or many["woken"] > many["objects"] + 1
    raise SystemExit(is_too_much)


if __name__ == "__main__":
    main()
