"""Within the limits of memory of the charts, no tenant has the daemon killed, which serves all the others.

How long the other tenant waits meanwhile is for `hack/bench/limits`, on a machine that does nothing else.
"""

from pathlib import Path

import pytest
from crowded_scene import LOGS, CrowdedScene, limits_of_charts
from memory_group import NoGroups, memory_group


@pytest.mark.slow
@pytest.mark.parametrize("limit", limits_of_charts().values(), ids=limits_of_charts())
def test_unread_logs_and_large_objects_kill_no_daemon(limit: int, tmp_path: Path) -> None:
    """Before, 300 logs took 390 MB, and five Secrets 610 MB."""
    try:
        with memory_group(limit) as group:
            scene = CrowdedScene(tmp_path, group, limit)
            with scene.stack:
                scene.start()
                answers = scene.follow_logs()
                assert {each[:12] for each in answers} <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
                assert len(answers) == LOGS
                scene.fill()
                scene.beat(3)
                assert scene.scene.lives
                assert group.killed() == 0
    except NoGroups as error:
        pytest.skip(str(error))
