"""The syncer in the README works as it stands there."""

import re
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"


def test_the_first_syncer_of_the_readme_passes_its_own_test() -> None:
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(code, str(README), "exec"), names)
    names["test_a_widget_goes_to_the_host"]()
