"""Items as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any


def plain(item: Any) -> Any:
    """An item as JSON can hold it; numbers that are not finite become null."""
    if isinstance(item, dict):
        return {str(key): plain(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [plain(value) for value in item]
    if hasattr(item, "tolist") and not isinstance(item, type):
        return plain(item.tolist())
    if isinstance(item, float):
        return item if math.isfinite(item) else None
    return item if item is None or isinstance(item, bool | int | str) else str(item)
