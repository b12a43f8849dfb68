"""How near candidates are to the question and to each other, in the facets of any schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from casewright.stores.feedback.reading import TITLES
from casewright.stores.hit import Hit

#: What the length of a unit vector in single precision may be off by, and more.
SLACK = 1e-2

Parts = Mapping[str, NDArray[np.float64]]


def facet_cosines(hit: Hit) -> tuple[float, float]:
    """Return the question's cosines with a case's text and with its title.

    A facet that goes by one of the ``TITLES``, and is not the only one, is the title's. Of several
    others the largest counts; of none, 0.
    """
    return _largest(hit.facet_scores)


class Likeness:
    """Compares hits with some others.

    A hit does not tell how long its facets' vectors are. Where they are equally long, as those of
    one encoder, the whole is cut into as many parts; where these are no unit vectors, the whole
    vectors are compared, and the result is the mean over the facets.
    """

    def __init__(self, others: Sequence[Hit]) -> None:
        self._others = [(hit, _parts(hit)) for hit in others]

    def to(self, hit: Hit) -> tuple[float, float]:
        """Return the largest cosines with any of the others: of texts, and of titles."""
        own = _parts(hit)
        pairs = [_cosines(hit, own, other, parts) for other, parts in self._others]
        texts, titles = zip(*pairs, strict=True) if pairs else ((0.0,), (0.0,))
        return max(texts), max(titles)


def _cosines(hit: Hit, own: Parts, other: Hit, parts: Parts) -> tuple[float, float]:
    if own and own.keys() == parts.keys():
        return _largest({name: float(own[name] @ parts[name]) for name in own})
    here, there = (np.asarray(each.vector, dtype=np.float64).ravel() for each in (hit, other))
    if here.shape != there.shape:
        return 0.0, 0.0
    return float(here @ there) / max(1, len(hit.facet_scores)), 0.0


def _parts(hit: Hit) -> Parts:
    """Return the facets' vectors by their names; none where they cannot be told apart."""
    vector = np.asarray(hit.vector, dtype=np.float64).ravel()
    count = len(hit.facet_scores)
    if not count or len(vector) % count:
        return {}
    cut = vector.reshape(count, -1)
    lengths = np.linalg.norm(cut, axis=1)
    # A component that is absent is zeros.
    if not ((lengths <= SLACK) | (abs(lengths - 1) <= SLACK)).all():
        return {}
    return dict(zip(hit.facet_scores, cut, strict=True))


def _largest(cosines: Mapping[str, float]) -> tuple[float, float]:
    titles = [name for name in cosines if name in TITLES] if len(cosines) > 1 else []
    texts = [value for name, value in cosines.items() if name not in titles]
    if not texts:
        return max(cosines.values(), default=0.0), 0.0
    return max(texts), max((cosines[name] for name in titles), default=0.0)
