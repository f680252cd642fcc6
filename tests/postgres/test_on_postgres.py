"""The tests of the data layer, leases and races on PostgreSQL.

Left out are files about pages, forms, passwords and computations with rows that were read: nothing in them
depends on the database.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
URL = os.environ.get("TRAINYARD_TEST_POSTGRES_URL", "")
TESTS = (
    "tests/jobs",
    "tests/accounts",
    "tests/fetching/test_fetches.py",
    "tests/code/test_actions.py",
    "tests/code/test_api.py",
    "tests/registry/test_races.py",
    "tests/registry/test_promotions.py",
)
OPTIONS = ("-q", "-p", "no:cacheprovider", "--color=no")
LEFT_OUT = (
    "tests/accounts/test_admin_pages.py",
    "tests/accounts/test_hashing.py",
    "tests/accounts/test_project_pages.py",
    "tests/accounts/test_second_factor.py",
    "tests/accounts/test_session.py",
    "tests/jobs/search/test_answer.py",
    "tests/jobs/experiments/test_find_model.py",
    "tests/jobs/experiments/test_found_models.py",
    "tests/jobs/test_kinds.py",
    "tests/jobs/search/test_lead.py",
)
SAME_ON_POSTGRES = {
    "tests/accounts/test_login.py": (
        "TestGuesses::test_are_limited_wherever_the_password_is_checked",
        "TestGuesses::test_from_all_addresses_of_this_machine_wait_together",
        "TestGuesses::test_from_ipv4_addresses_in_their_ipv6_form_wait_apart",
        "TestGuesses::test_from_one_address_wait_whichever_names_are_tried",
    ),
    "tests/accounts/test_sandbox_settings.py": (
        "test_an_invalid_setting_is_refused_with_its_field",
        "test_others_see_them_and_cannot_change_them",
        "test_the_settings_of_a_project_allow_network",
    ),
    "tests/code/test_api.py": (
        "test_the_same_files_are_the_same_version_however_they_arrive",
        "test_the_digest_is_that_of_sorted_paths_and_contents",
        "test_pasted_text_is_a_file_with_ordinary_lines",
        "test_a_refusal_names_the_field",
        "test_a_json_body_is_checked",
        "test_half_of_a_character_in_json_is_malformed",
        "test_a_file_that_ends_the_reader_is_refused",
        "test_while_other_code_is_read_the_client_is_asked_to_wait",
        "test_versions_are_compared",
    ),
    "tests/code/test_code_api_deletions.py": (
        "test_the_empty_path_is_no_file",
        "test_files_arrive_also_if_the_text_is_blank",
    ),
    "tests/fetching/test_fetch_requests.py": (
        "test_a_cancelled_fetch_keeps_nothing",
        "test_a_credential_is_used_for_its_host_alone",
    ),
    "tests/fetching/test_fetches.py": (
        "test_a_file_must_fit_into_the_disk_quota_before_and_after_it_is_received",
        "test_a_file_must_have_the_digest_of_the_request",
        "test_a_length_that_is_too_small_cuts_the_file_at_that_length",
        "test_a_source_that_does_not_begin_in_time_is_given_up",
        "test_an_endless_file_ends_at_the_limit_of_an_upload",
        "test_the_quota_ends_a_file_whose_size_is_not_announced",
    ),
    "tests/jobs/runs/test_pipeline.py": (
        "test_a_search_past_its_trials_takes_no_more",
        "test_a_search_without_a_completed_trial_names_the_last_error",
        "test_a_search_without_more_ends_when_its_trials_do",
        "test_a_stopped_search_keeps_its_results",
        "test_a_training_without_a_search_continues_with_its_steps",
        "test_a_trials_score_is_the_mean_over_its_executions",
        "test_failing_trials_do_not_end_a_search_until_too_many_in_a_row",
        "test_pausing_waits_for_the_checkpoint_and_resuming_continues_from_it",
        "test_the_failed_trial_of_a_completed_search_is_retried_without_its_old_start_and_error",
        "test_the_steps_after_a_search_run_one_by_one",
    ),
    "tests/jobs/runs/test_running_executions.py": (
        "test_an_execution_that_ends_early_keeps_the_epochs_of_its_checkpoint",
        "test_the_progress_does_not_fall_when_a_search_is_paused_and_resumed",
    ),
    "tests/jobs/runs/test_time_left.py": (
        "test_halfway_the_remaining_time_is_right_within_30_percent",
        "test_the_fraction_still_rises_during_the_later_steps",
        "test_the_time_left_of_the_last_step_counts_down_and_then_is_unknown",
    ),
    "tests/jobs/search/test_batch_failures.py": (
        "test_a_failed_task_fails_its_running_trial",
        "test_a_trial_in_the_middle_that_fails_ends_alone",
        "test_trials_that_had_not_begun_pause_and_stop_with_the_rest",
    ),
    "tests/jobs/search/test_ensembles.py": (
        "test_chosen_trials_are_retrained_and_pooled_beside_their_search",
    ),
    "tests/jobs/search/test_finish.py": (
        "test_a_finishing_search_can_still_be_stopped",
        "test_a_search_that_stops_is_not_finished",
        "test_a_search_whose_steps_run_is_not_finished",
        "test_retrying_a_finished_search_runs_only_its_failed_steps",
        "test_the_progress_of_a_finished_search_counts_only_what_ran",
    ),
    "tests/jobs/search/test_retraining.py": ("test_clearly_worse_means_that_the_intervals_do_not_overlap",),
    "tests/jobs/search/test_rung_batches.py": (
        "test_stopping_a_search_stops_waiting_trials_and_a_retry_continues_them",
        "test_the_remaining_time_counts_the_epochs_of_later_rungs",
        "test_the_score_of_a_continued_trial_does_not_count_for_a_rung",
    ),
    "tests/jobs/search/test_rung_promotion.py": (
        "test_a_trial_retried_after_the_last_answer_is_still_promoted_or_pruned",
        "test_a_trial_that_ends_a_rung_interrupts_a_row_of_failures",
        "test_a_waiting_trial_keeps_its_score_and_a_second_end_of_a_rung_replaces_the_first",
        "test_asha_ends_with_every_trial_decided",
    ),
    "tests/jobs/search/test_search_changes.py": (
        "test_a_grid_made_narrower_ends_after_its_last_point",
        "test_a_paused_search_can_be_changed_and_resumed",
        "test_trials_outside_the_narrowed_space_that_have_not_begun_are_withdrawn",
    ),
    "tests/jobs/search/test_trial_continues.py": (
        "test_a_continued_trial_whose_attempt_ends_keeps_its_earlier_result",
        "test_too_few_or_too_many_epochs_are_refused",
    ),
    "tests/jobs/storage/test_store.py": (
        "test_blocks_are_stored_under_their_digest_once",
        "test_blocks_that_a_check_refuses_leave_nothing",
        "test_blocks_that_end_with_an_error_leave_nothing",
    ),
    "tests/registry/test_promotions.py": (
        "test_a_decided_request_stays_decided",
        "test_a_gate_that_was_not_evaluated_must_be_accepted_by_name",
        "test_the_comments_of_a_request_are_limited_and_its_decision_is_not",
    ),
}
"""Tests whose statements are all executed by other tests of this run, as once recorded for each test.

They compute or refuse: no lock, order, comparison of the database or end of a transaction
decides about their results.
"""


@pytest.mark.timeout(900)
@pytest.mark.skipif(
    not URL, reason="TRAINYARD_TEST_POSTGRES_URL is not set: run through scripts/with-postgres"
)
@pytest.mark.timeout(1200)  # many tests in one; the slowest machines take three times as long as the fastest
def test_the_data_layer_holds_on_postgresql_too() -> None:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("TRAINYARD_TEST_HOME", "TRAINYARD_HOME", "TRAINYARD_TEST_POSTGRES_URL")
    }
    left_out = [f"--ignore={file}" for file in LEFT_OUT]
    for file, names in SAME_ON_POSTGRES.items():
        text = (ROOT / file).read_text()
        assert [name for name in names if f"def {name.rpartition(':')[2]}(" not in text] == []
        left_out += [f"--deselect={file}::{name}" for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *TESTS, *left_out, *OPTIONS],
        cwd=ROOT,
        env=environment | {"TRAINYARD_DATABASE_URL": URL},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout
