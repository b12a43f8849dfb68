"""What says which tokens may be written: a grammar's matcher, or one that admits any text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Matcher(Protocol):
    """Follows the tokens of one text; for one thread at a time."""

    def copy(self) -> Matcher:
        """Return a matcher of the same text at the same place, which goes on by itself."""

    def forced(self) -> list[int]:
        """Consume and return the tokens that nothing else can follow; none where there is a choice.

        Raises:
            GrammarError: No token can go on.
        """

    def allowed(self) -> NDArray[np.intp]:
        """Return the ids of the tokens that may come next, ascending; at least one.

        Raises:
            GrammarError: No token can go on.
        """

    def consume(self, token: int) -> None:
        """Go on with a token.

        Raises:
            GrammarError: It cannot come here.
        """

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""
