"""What PyInstaller does not find in the source: modules that are imported by computed names."""

from pathlib import Path
from pkgutil import iter_modules


def get_hook_dirs() -> list[str]:
    """The folder of `hook-widemargin.py`: PyInstaller asks for it by an entry point."""
    return [str(Path(__file__).parent)]


def hidden_imports() -> list[str]:
    """The compiled modules that are installed, and the packages of the public names."""
    from .. import _NAMES, _native

    compiled = [f"_native.{module.name}" for module in iter_modules(_native.__path__)]
    return [f"widemargin.{name}" for name in (*compiled, "datasets", *sorted(_NAMES))]
