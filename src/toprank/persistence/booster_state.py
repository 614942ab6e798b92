"""Models of LightGBM and XGBoost: boosters as the text or JSON of the library, read strictly before it is used."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.persistence.errors import ModelFileError
from toprank.persistence.lightgbm_text import check_lightgbm_text
from toprank.persistence.xgboost_json import check_xgboost_json
from toprank.saved_state import Array, Known, Part, Schema, StateError, count

_CONTENT = Array("u1", (None,))
LIGHTGBM = Schema({"text": _CONTENT, "best_iteration": count(-1)}, fitted=None)
XGBOOST = Schema({"json": _CONTENT}, fitted=None)


def pack_lightgbm(booster: Any) -> dict[str, Any]:
    """All of the text, and which iteration was the best."""
    text = booster.model_to_string(num_iteration=-1)
    _checked_to_save(check_lightgbm_text, text, "LightGBM")
    return {"text": _as_bytes(text), "best_iteration": int(booster.best_iteration)}


def unpack_lightgbm(cls: type, state: dict[str, Any]) -> Any:
    """A booster of a text that was found right."""
    text = state["text"].tobytes().decode()
    check_lightgbm_text(text)
    booster = _made(lambda: cls(model_str=text))
    booster.best_iteration = state["best_iteration"]
    return booster


def pack_xgboost(booster: Any) -> dict[str, Any]:
    """The JSON of the model."""
    text = bytes(booster.save_raw("json")).decode()
    _checked_to_save(check_xgboost_json, json.loads(text), "XGBoost")
    return {"json": _as_bytes(text)}


def unpack_xgboost(cls: type, state: dict[str, Any]) -> Any:
    """A booster of what was found right: written anew, so that the library reads what was checked."""
    content = json.loads(state["json"].tobytes())
    check_xgboost_json(content)
    booster = cls()
    _made(lambda: booster.load_model(bytearray(json.dumps(content).encode())))
    return booster


def _as_bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _checked_to_save(check: Any, content: Any, library: str) -> None:
    try:
        check(content)
    except StateError as error:
        raise ModelFileError(f"a model of {library} is not saved, as it {error}") from error


def _made(make: Any) -> Any:
    """What the library makes; its errors have types of its own."""
    try:
        return make()
    except Exception as error:
        raise StateError(f"is refused by its library ({' '.join(str(error).split())[:160]})") from error


def _has_its_features(known: Known) -> bool:
    booster = known.get("_Booster")
    return booster is None or bool(booster.num_feature() == known["_n_features"])


_LIGHTGBM_MODEL = Schema(
    {"_Booster": Part(("model_to_string",), none=True), "_n_features": count(-1, none=True, optional=True)},
    fitted=None,
    relations={"a booster of its features": _has_its_features},
)
_XGBOOST_MODEL = Schema({"_Booster": Part(("save_raw",), optional=True)}, fitted=None)
BOOSTER_STATES: dict[str, Schema] = {
    **{f"lightgbm.LGBM{kind}": _LIGHTGBM_MODEL for kind in ("Classifier", "Regressor")},
    **{f"xgboost.XGB{kind}": _XGBOOST_MODEL for kind in ("Classifier", "Regressor")},
}
