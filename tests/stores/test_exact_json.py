"""Cases with any JSON values are returned exactly, by every engine."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casewright.stores import Case, CaseStore
from casewright.stores.engines.payload import read_server_payload, server_payload

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_case_with_any_json_is_returned_exactly(store: CaseStore) -> None:
    nested: Any = "bottom"
    for _ in range(100):
        nested = {"deeper": [nested]}
    case = Case(
        {"question": "q", "z": 0.1 + 0.2, "a": 10**30, "m": -(2**64)},
        {"deep": nested, "tiny": 5e-324, "json": "metadata", "": [[], {}]},
        result={"score": 0.7268117120650481},
        metadata={"tenant": "é", "large": 2**70, "deep": nested, "many": [1, True, "1", None]},
        quality=0.30000000000000004,
    )
    store.add([case])
    (stored,) = store.all()
    assert json.dumps(stored.to_json()) == json.dumps({**case.to_json(), "created": stored.created})
    assert store.retain(case).outcome == "unchanged"
    assert store.count({"many": True, "tenant": "é"}) == 1
    assert store.count({"large": {"gt": 2**69, "lt": 2**71}}) == 1


@given(st.fixed_dictionaries({"solution": JSON, "metadata": st.dictionaries(st.text(), JSON)}))
def test_server_payload_is_read_back_exactly(case: Any) -> None:
    stored = json.loads(json.dumps(server_payload(case)))
    assert json.dumps(read_server_payload(stored)) == json.dumps(case)
