"""The warnings of a call."""

import warnings
from collections.abc import Callable
from typing import Any


def warnings_of(category: type[Warning], call: Callable[..., Any], *args: Any, **how: Any) -> list[str]:
    """The texts of the warnings of this very category."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **how)
    return [str(w.message) for w in caught if w.category is category]
