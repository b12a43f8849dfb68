"""Test of RepoGPT's example on an invented Java package: a method that is cut in two.

``test_post_example.py`` has the post's own question; its package is not shipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from casewright.stores import Case, CaseSchema, CaseStore, default_encoder, text_facet
from tests.domains.code.test_post_example import check_two_rounds, chunks, find_half

QUESTION = "show the full fill method in the CrateLoader class containing all its lines"
#: Chunks that a round fetches.
FETCHED = 3
CUT, REST = "double free = 0;", "slack[next] -= weight;"
LOADER = """/**
 * Fills crates with goods: the loader of the warehouse, CrateLoader.
 */
public class CrateLoader extends Loader {

    /**
     * The fill method fills every crate of the CrateLoader class and returns their loads.
     *
     * @param goods the goods to load
     * @return the load of every crate
     */
    private double[] fill(final List<Good> goods) {
        final int crates = getNumberOfCrates();
        final double[] slack = new double[crates];
        final double[] loads = new double[crates];
        final int size = goods.size();
        int next = 0;
        double free = 0;

        for (int i = 0; i < crates; i++) {
            slack[i] = getCapacity(i);
            free += slack[i];
        }
        for (int i = 0; i < size && free > 0; i++) {
            final double weight = goods.get(i).getWeight();
            while (slack[next] < weight) {
                next = (next + 1) % crates;
            }
            slack[next] -= weight;
            loads[next] += weight;
            free -= weight;
        }
        return loads;
    }

    /**
     * The constructor of the CrateLoader class: how many crates its fill method fills.
     *
     * @param crates number of crates
     */
    public CrateLoader(final int crates) {
        super(crates);
    }
}
"""
#: Classes that are nearer to the question than the second half is.
OTHERS = {
    f"{name}CrateLoader.java": f"""/**
 * A CrateLoader class whose fill method fills {goods}, all lines of it in one method.
 */
public class {name}CrateLoader extends CrateLoader {{
    /** Show what the fill method of this loader class contains. */
    public String toString() {{ return "{name}"; }}
}}
"""
    for name, goods in (("Cold", "cold rooms"), ("Night", "crates by night"), ("Ship", "ships"))
}


@pytest.fixture(scope="module")
def store() -> Iterator[CaseStore]:
    with CaseStore(CaseSchema("java", (text_facet("text", default_encoder()),))) as store:
        store.add(
            Case({"text": f"{name}\n{chunk}"})
            for name, text in {"CrateLoader.java": LOADER, **OTHERS}.items()
            for chunk in chunks(text, 600)
        )
        yield store


def test_a_method_cut_in_two_is_found_whole_in_two_rounds_and_the_loop_stops(
    store: CaseStore,
) -> None:
    first, second = (find_half(store, words, "CrateLoader.java") for words in (CUT, REST))
    check_two_rounds(store, QUESTION, first, second, FETCHED)
