"""Print the lowest versions that pyproject.toml allows of what package and tests import, as pip's constraints."""

import re
import tomllib
from pathlib import Path

_EXTRAS = ("plot", "demo", "onnx", "dask", "test")


def lowest_versions() -> list[str]:
    """`name==version` of each requirement `name[extra]>=version`."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = project["dependencies"] + [r for extra in _EXTRAS for r in project["optional-dependencies"][extra]]
    bounds = (re.fullmatch(r"([\w-]+)(?:\[.*\])?>=([\d.]+)", requirement) for requirement in requirements)
    return sorted(f"{bound[1]}=={bound[2]}" for bound in bounds if bound)


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
