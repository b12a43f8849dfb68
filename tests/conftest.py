"""Settings of every test: what is built is kept in the checkout, never in the user's folders."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from casewright.planner import Reader
    from tests.support.readers import Taught

os.environ.setdefault("CASEWRIGHT_HOME", str(Path(__file__).parents[1] / ".casewright"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tests run beside each other: torch with a thread a core in each of them would be far slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def _holds_files() -> bool:
    """Return whether what tests write fits in memory: less than 1 GB, and some of it is run."""
    try:
        memory = os.statvfs("/dev/shm")
    except OSError:
        return False
    return memory.f_bavail * memory.f_frsize > 2**31 and not memory.f_flag & os.ST_NOEXEC


# On a disk, a new store waits 0.3 s for what it flushes; in memory, 0.01 s.
if "TMPDIR" not in os.environ and _holds_files():
    tempfile.tempdir = os.environ["TMPDIR"] = "/dev/shm"

#: Whose tests share what takes long, which one process makes once: a home with the shop's stores; a
#: trained reader; the corpus; the parsed sources; a browser and services; sentence-transformers,
#: whose import takes ten seconds; TRL, which takes nearly as long.
SHARING = {
    "bench/test_bench_reaper": "training",
    "finetune/test_corpus": "corpus",
    "finetune/test_ship": "training",
    "finetune/test_training_": "training",
    "layout/test_wheel": "wheel",
    "layout/": "layout",
    "serve/cli/test_finetune_adapt": "training",
    "serve/cli/test_finetune_train": "training",
    "serve/cli/test_encoder_option": "sentence-transformers",
    "stores/test_encoders": "sentence-transformers",
    "stores/test_minilm": "sentence-transformers",
    "stores/test_sentence_encoder": "sentence-transformers",
    "serve/service/test_serve_command": "shop",
    "serve/page/": "page",
    "serve/service/": "service",
    "serve/": "shop",
    "domains/test_shopping": "shop",
    "bench/test_bench_selection": "shop",
    "bench/test_bench_service": "shop",
    "bench/test_decoding": "shop",
    "bench/test_latency": "shop",
    "docs/test_notebooks": "shop",
    "docs/test_readme": "shop",
    "docs/test_snippets": "shop",
    "bench/test_bench_planner": "reader",
    "finetune/test_reader_training": "reader",
    "planner/test_case_planner_reader": "reader",
}


#: What the default run leaves out and ``make test-all`` runs: tests of seconds that show once more,
#: on another engine or in other words, what a quicker one shows, and benches whose parts are tested
#: by themselves. File, then how the name goes on.
SLOW = {
    "bench/test_bench_encoder": ("",),
    "bench/test_bench_executor": ("prints_one_object",),
    "bench/test_bench_index": ("",),
    "bench/test_bench_legal_answers": ("compared_question_by_question",),
    "bench/test_bench_own_tools": ("measures_a_folder",),
    "bench/test_bench_plan_cache": ("same_for_the_same_seed",),
    "bench/test_bench_planner": ("",),
    "bench/test_bench_reaper": ("",),
    "bench/test_bench_selection": ("",),
    "bench/test_bench_service": ("whole_bench",),
    "bench/test_bench_stores": ("",),
    "bench/test_bench_unseen": ("reuses_them", "measures_a_model", "adds_public_sets"),
    "bench/test_chat": ("",),
    "bench/test_decoding": ("",),
    "bench/test_latency": ("",),
    "bench/test_soak": (
        "service_that_is_killed",
        "[kills_of_ingest",
        "wrong[service]",
        "wrong[threads]",
        "wrong[random]",
    ),
    "bench/test_truthfulqa": ("second_run",),
    "docs/test_notebooks": ("kept_with[planner", "kept_with[tour"),
    "docs/test_site": ("is_built_without",),
    "docs/test_snippets": (
        "[docs/corpus.md]",
        "[docs/fine-tuning.md]",
        "[docs/own-models.md]",
        "prints_that[docs/approval.md]",
        "prints_that[docs/domains.md]",
        "prints_that[docs/plans.md]",
        "prints_that[docs/operating.md]",
        "prints_that[docs/mending.md]",
        "prints_that[docs/comparison.md]",
    ),
    "domains/legal/test_legal_data": ("reaches_some_accuracy",),
    "domains/legal/test_legal_domain": ("built_anew[full", "built_anew[qsa"),
    "domains/test_building": (
        "plan_cases_are_built_when",
        "counts_as_none[[]]",
        "counts_as_none[null",
        "counts_as_none[]",
        'counts_as_none[{"other',
    ),
    "domains/test_feedback": ("rounds_of_the_shop",),
    "domains/test_shopping_orders": (
        "customers_orders[C002-",
        "customers_orders[C003-",
        "customers_orders[C004-",
        "customers_orders[C005-",
        "customers_orders[C006-",
    ),
    "domains/test_shopping_plans": ("one_step_in_twenty", "as_running_them_step_by_step"),
    "finetune/test_calibrate": (
        "scores_nothing_twice[0]",
        "scores_nothing_twice[5]",
        "scores_nothing_twice[30]",
        "scores_nothing_twice[17]",
    ),
    "finetune/test_classifiers": ("same_queries_give", "any_question_gets"),
    "finetune/test_corpus.py": ("counts_the_corpus",),
    "finetune/test_folds": ("equal_questions_never_stand_in_two_folds_of_the_shopping_queries[2",),
    "finetune/test_judge_training": ("run_later[1",),
    "finetune/test_parser_training": ("loss_of_one_episode",),
    "finetune/test_reader_training": ("far_better_than_an_untrained_one", "equal_seeds_give"),
    "finetune/test_tevo_shopping": ("",),
    "finetune/test_training_batches": ("accumulated_over_eight",),
    "finetune/test_training_from": (
        "resumes_to_the_same_bytes",
        "time_is_over",
        "keeps_what_was_trained",
        "told_whole",
    ),
    "finetune/test_training_resumed": (
        "damaged_checkpoint",
        "two_processes",
        "[damaged",
        "[whole]",
        "shared_heads_resume",
        "not_gone_on_from",
    ),
    "finetune/test_training_run": ("goes_astray", "on_a_merged_one"),
    "finetune/test_training_shared_heads": ("several_heads", "each_example[adapter"),
    "graph/test_as_node": ("killed_in_the_middle",),
    "graph/test_as_tool": ("killed_in_the_middle",),
    "graph/test_chat_fallback": ("hanging_model_holds_neither_the_answer_nor_the_process[async",),
    "graph/test_crash": ("again_and_again", "mixes_up_no_results[async", "dies_at_the_first_call"),
    "graph/test_deadline": ("[async",),
    "graph/test_extractive": ("[async-",),
    "graph/test_feedback_bounds": ("within_its_time[async",),
    "graph/test_feedback_state": ("strict_checkpointer",),
    "graph/test_input_errors": ("[async-",),
    "graph/test_mend": ("[async-", "fresh_process_repeats_none"),
    "graph/test_references": ("[async-",),
    "graph/test_request_limits": ("[async-",),
    "graph/test_retries": ("[async-",),
    "graph/test_schedule": ("[async",),
    "graph/test_state": ("plain_types_may_be_read_back[async",),
    "graph/test_stream": ("[async",),
    "graph/test_timeouts": ("[async", "[sync-cancels", "[sync-swallows"),
    "layout/test_wheel": ("is_installed_and_answers",),
    "packages/backgammon/test_ask": ("cut.png", "blank.png", "sixteen.png"),
    "packages/backgammon/test_bench": ("",),
    "packages/backgammon/test_boards": (
        "test_training_writes",
        "random_styles",
        "refused[kinds1",
        "random_positions",
    ),
    "packages/backgammon/test_latents": ("one_seed_trains",),
    "packages/math24/test_answering": ("train_contrastive_network",),
    "packages/math24/test_bench": ("every_way_has", "nested_settings", "without_a_second_attempt"),
    "planner/test_budget": ("none_beyond_it",),
    "planner/test_case_planner_reader": ("valid_plan[context1",),
    "planner/test_case_planner_shopping": (
        "greatest_length",
        "reaches_for_an_identifier",
        "test_any_question",
        "valid_plan_for_every_query",
    ),
    "planner/test_chat_call": ("holds_nobody[late-",),
    "planner/test_chat_http": ("outlast_the_deadline[async",),
    "planner/test_decoding": ("True-llama",),
    "planner/test_history": ("counts_without_a_reader",),
    "planner/test_model_planner_plans": ("test_2000_plans",),
    "planner/test_parse_refused": (
        "linear_time[a list of texts",
        "linear_time[many steps, the last",
    ),
    "planner/test_smollm2": ("leaves_a_whole_folder", "as_a_mistral"),
    "serve/cli/test_base_install": (
        "without_any_extra[arguments1",
        "[arguments1-local",
        "[arguments2-finetune",
        "[arguments3-documents",
        "[arguments0-local",
    ),
    "serve/cli/test_calibrate_command": ("killed_run", "plan_cases_of_a_domain"),
    "serve/cli/test_chat_command": ("earlier_turns_from_a_file", "line_ends_it[\\n"),
    "serve/cli/test_damaged_folder": (
        "names_folder_and_mend[cut_off",
        "names_folder_and_mend[missing",
        "names_folder_and_mend[no_json",
        "names_folder_and_mend[emptied",
        "building_anew",
    ),
    "serve/cli/test_domains_command": ("asks_for[2-", "asks_for[3-"),
    "serve/cli/test_finetune_adapt": ("learns_from_messages",),
    "serve/cli/test_finetune_data": ("same_seed_makes_the_same_bytes",),
    "serve/cli/test_finetune_parser": ("",),
    "serve/cli/test_finetune_train": ("ctrl_c",),
    "serve/cli/test_front_door": ("reads_earlier_turns",),
    "serve/cli/test_held_folder": ("wait_for_each_other", "leaves_it_built"),
    "serve/cli/test_ingest": ("that_was_interrupted",),
    "serve/cli/test_own_domain": ("wants_to_know_who_asks",),
    "serve/cli/test_plan_parser": ("imports_no_torch",),
    "serve/cli/test_start": (
        "load_no_model_and_no_store[arguments0",
        "load_no_model_and_no_store[arguments2",
        "taken_by_head",
        "no_reason_to_complain[arguments1",
        "no_reason_to_complain[arguments2",
        "no_store[arguments1",
        "console_script",
    ),
    "serve/cli/test_way_of_ask": ("",),
    "serve/service/test_connections": ("half of the headers", "half of a second"),
    "serve/service/test_kept_threads": ("resumed_stay[database",),
    "serve/service/test_killed_anywhere": ("",),
    "serve/service/test_mcp": ("approval_holds",),
    "serve/service/test_mend": ("killed_while_it_is_mended",),
    "serve/service/test_openapi": ("[fuzzing",),
    "serve/service/test_repeats": ("gone_on_with[memory", "[database"),
    "serve/service/test_serve_command": ("langgraph_s_own_server",),
    "serve/service/test_shared_port": ("three_services",),
    "serve/service/test_unkept_values": ("[thread1-",),
    "serve/session/test_default_planner": (
        "by_its_name_as_its_folder",
        "untuned_base",
        "for_the_shop",
    ),
    "serve/session/test_extensions": (
        "judge_of_another",
        "command_of_another",
        "listed_beside_ours",
    ),
    "serve/session/test_planner_names": ("tells_what_it_wrote",),
    "stores/test_approximate": ("[spread 2",),
    "stores/test_certified": ("every_engine[server",),
    "stores/test_damaged_edge": (
        "left_is_damage[shard/edge_config",
        "left_is_damage[shard/wal",
        "left_is_damage[shard/segments/*/mutable",
        "left_is_damage[shard/segments/*/version",
    ),
    "stores/test_engines": (
        "share_a_folder[notes",
        "share_a_folder[_-",
        "share_a_folder[-",
        "share_a_folder[NUL",
    ),
    "stores/test_hostile_files": ("[a.html-<a a=", "[a.md-# h", "[a.html-<h1", "[a.js-, f"),
    "stores/test_ingest_failures": ("[llama_index",),
    "stores/test_ingest_killed": ("[local", "first_run"),
    "stores/test_killed.py": ("[local", "loses_nothing_acknowledged[0.2", "ends_quietly"),
    "stores/test_killed_retain": ("[local", "had_returned[80", "or_as_after[2", "killed_delete"),
    "stores/test_langchain_retriever": ("own_answer[server",),
    "stores/test_locked": ("[local",),
    "stores/test_minilm": (
        "another_name[7",
        "command_to_install_them[half",
        "command_to_install_them[flipped",
    ),
    "stores/test_mmr": ("put_in_order[crowded", "put_in_order[random"),
    "stores/test_repair": (
        "loses_none[cut",
        "edge_config",
        "first-index",
        "versions",
        "status",
        "payload_storage",
        "mutable_id_tracker",
        "version.info",
        "loses_none[flipped-closed",
        "loses_none[flipped-count",
        "loses_none[flipped-layout",
        "half_of_the_mappings",
        "come_back_are_counted",
    ),
    "stores/test_retain": ("other_solutions[server", "counts_in_the_next_search[server"),
    "stores/test_servers": (
        "its_status[401",
        "its_status[404",
        "its_status[500",
        "is_unavailable[html",
        "is_unavailable[nothing",
        "not_told[400",
        "not_told[403",
    ),
    "stores/test_threads": ("[server",),
    "stores/test_ties": ("every_engine[server",),
    "stores/test_update": ("hundreds_of_cases_are_updated_in_one_call_and_reopened[local",),
    "stores/test_where": ("in_search_count_and_all[memory", "in_search_count_and_all[server"),
    "stores/test_where_ranges": ("mean_in_python[server",),
    "tools/test_mcp": (
        "slow_tool_is_abandoned_in_time_and_its_server_ends[async",
        "kept_apart_by_a_prefix",
        "over_several_tools_runs_and_is_answered[async",
        "serves_the_next[async",
        "the_request_s_to_say[async",
        "is_refused[more1",
        "is_refused[more2",
        "is_refused[more3",
        "run_goes_on",
    ),
    "tools/test_process": ("decorated_function", "[tool-", "[unicode-"),
}

#: Of a hundred examples that hypothesis draws in ``make test-all``, those that the default run
#: draws; ``tests/support/examples`` scales by it what a test itself says.
settings.register_profile("default run", max_examples=15)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are gathered, nor ever again among what was imported.

    Over a million objects live as long as the run: to look through them again and again took a
    quarter of the time that it takes to gather the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow ones."""
    for item in items:
        file = item.nodeid.partition("::")[0].removeprefix("tests/")
        parts = [part for start, names in SLOW.items() if file.startswith(start) for part in names]
        if any(part in item.name for part in parts):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples in the default run."""
    if config.option.markexpr == "not slow":
        settings.load_profile("default run")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together, where tests run in several processes, those that share what takes long.

    A scheduler, since xdist 3.8 finds no mark of a group from pytest 9.2 on (xdist issue 1386).
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/")
            return next((group for start, group in SHARING.items() if file.startswith(start)), file)

    return Groups(config, log)


@pytest.fixture(scope="session", autouse=True)
def _one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One certificate: every client of a server reads all that there are, and none needs any."""
    first, end, _ = Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")
    file = tmp_path_factory.mktemp("authority") / "one.pem"
    file.write_text(f"{first}{end}\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture(scope="session")
def taught_reader(tmp_path_factory: pytest.TempPathFactory) -> Taught:
    """A reader that was trained on toy queries; some twenty seconds, once a session."""
    from tests.support.readers import taught

    return taught(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="session")
def untrained_reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader of the same forms whose network learned nothing."""
    from tests.support.readers import untrained

    return untrained(tmp_path_factory.mktemp("untrained"))
