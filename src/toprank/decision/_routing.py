"""Arguments of `fit` on their way to the wrapped estimator and to a splitter."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing


class RoutesToSplitter:
    """Mixin of what wraps an `estimator` and splits rows by `cv`."""

    estimator: Any
    cv: Any

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments of the estimator's fit and of the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", **params)
            return dict(routed.estimator.fit), dict(routed.splitter.split) if "splitter" in routed else {}
        given = {name: value for name, value in params.items() if value is not None}
        splitter = {name: given.pop(name) for name in ("groups",) if name in given}
        return given, splitter

    def get_metadata_routing(self) -> MetadataRouter:
        """How arguments of `fit` reach the estimator and the splitter.

        Returns
        -------
        MetadataRouter
            The routing of this object.
        """
        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router
