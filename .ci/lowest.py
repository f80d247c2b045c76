"""Print the lowest versions that pyproject.toml allows fedsim and its tests: each `>=` becomes `==`."""

import tomllib
from pathlib import Path

text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
project = tomllib.loads(text)["project"]
wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
print(*(name.replace(">=", "==") for name in wanted if ">=" in name))
