"""The tests that show the effects of the fields which `form_effects.py` does not try."""

FIND, SCRIPT = "experiments/test_find_model.py", "experiments/test_script_form.py"
REGISTER, OWN_CODE = "registry/pages/test_register_page.py", "registry/pages/test_own_code_pages.py"
REGISTRY, LOGIN = "registry/pages/test_pages.py", "accounts/test_login.py"
DEPARTURE, LINKS = "accounts/test_departures.py", "accounts/test_login_links.py"
DESIGNER, ESTIMATES = "experiments/mesh/test_designer_page.py", "experiments/test_mesh_estimates.py"
DRY_RUNS, SHARING = "experiments/test_dry_runs.py", "api/test_sharing.py"
_FOUND = f"{FIND}::test_the_form_starts_a_search_over_all_templates_that_take_the_data"
_HANDED = f"{DEPARTURE}::test_hands_over_and_deactivates"
_ACCEPTED = f"{DEPARTURE}::test_shows_a_difference_of_rights_and_changes_nothing"
_RESERVED = f"{SHARING}::test_a_reservation_is_made_listed_ended_and_deleted"
_ESTIMATED = f"{ESTIMATES}::test_what_does_not_change_the_step_is_not_estimated_again"
_KINDS = f"{DESIGNER}::test_the_kind_and_the_simulation_of_devices_are_read"
_DISMISSED = "web/test_needs_you.py::test_a_dismissed_failure_comes_back_with_a_new_end"
_SMALLER = "registry/test_smaller_versions.py::test_the_job_makes_a_new_version_of_the_same_model"
_SPEEDS = f"{DESIGNER}::test_the_assumed_hardware_changes_the_expectation"

SHOWN_BY: dict[str, dict[str, str]] = {
    "ReservationForm": {
        "gpus": "web/test_sharing_pages.py::test_gpus_are_reserved_on_the_page_and_named_in_the_week"
    },
    "ReservationIn": {"gpus": f"{SHARING}::test_gpus_of_a_worker_are_reserved_with_their_slots"},
    "FindModelForm": {
        **dict.fromkeys(("dataset", "amount", "unit"), _FOUND),
        "objective": f"{FIND}::test_the_objective_is_one_that_the_task_of_the_data_offers",
        "register_as": f"{FIND}::test_best_model_and_ensemble_become_versions_of_a_named_model",
        "name": f"{FIND}::test_each_search_without_a_name_gets_another_one",
    },
    "ScriptForm": {
        "name": f"{SCRIPT}::test_a_script_that_is_run_again_gets_another_name",
        "seen": f"{SCRIPT}::test_two_people_who_edit_a_script_choose_between_their_versions",
        "tags": f"{SCRIPT}::test_tags_and_notes_are_kept_beside_the_spec",
        "notes": f"{SCRIPT}::test_tags_and_notes_are_kept_beside_the_spec",
    },
    "GcsForm": dict.fromkeys(
        ("name", "account"), "fetching/test_credentials.py::test_a_saved_credential_shows_all_but_its_secret"
    ),
    "RegisterForm": {
        "model": f"{REGISTER}::test_it_becomes_the_next_version_of_an_existing_model",
        "name": f"{REGISTER}::test_a_finished_training_leads_to_a_new_model_and_its_version",
    },
    "UploadForm": {
        **dict.fromkeys(("file", "code"), f"{OWN_CODE}::test_an_upload_by_the_form_names_its_code"),
        "sample": f"{OWN_CODE}::test_the_rows_of_a_sender_are_stored_with_the_upload",
    },
    "DecisionForm": {
        "comment": f"{REGISTRY}::test_a_decision_that_comes_too_late_keeps_the_comment_for_the_thread",
        "accept": f"{REGISTRY}::test_open_gates_are_check_boxes",
    },
    "RollbackForm": {"reason": f"{REGISTRY}::test_rolling_back_on_the_page_needs_a_reason"},
    "DownForm": {
        "reason": "registry/pages/test_refused_forms.py::"
        "test_taking_down_without_a_reason_is_refused_at_its_own_field"
    },
    "DepartureForm": {
        **dict.fromkeys(("tokens", "to"), _HANDED),
        **dict.fromkeys(("accept", "shown_for"), _ACCEPTED),
    },
    "LinkForm": {"password": f"{LINKS}::test_needs_the_password_if_another_person_made_it"},
    "PasswordForm": dict.fromkeys(
        ("oldpassword", "password1", "password2"),
        f"{LOGIN}::test_end_in_other_browsers_when_the_password_changes",
    ),
    "CodeForm": {"code": f"{LOGIN}::test_is_asked_for_and_accepts_a_code_once"},
    "ConfirmCodeForm": {"code": f"{LOGIN}::test_of_a_code_are_limited_although_the_password_was_right"},
    "KindForm": {
        "project": "api/test_kind_submission.py::"
        "test_neither_route_nor_form_exist_without_a_kind_that_allows_submission"
    },
    "SharedTextForm": {
        "seen": "experiments/test_notes.py::"
        "test_notes_that_another_person_saved_meanwhile_are_shown_beside_mine"
    },
    "MeshEntries": {
        **dict.fromkeys(("devices", "simulated"), _KINDS),
        "axes": f"{DESIGNER}::test_a_size_changes_the_mesh",
        "batch": f"{DESIGNER}::test_the_batch_axis_changes_how_a_batch_is_divided",
        "rules": f"{DESIGNER}::test_rules_are_added_moved_and_removed",
    },
    "ViewEntries": {
        "variable": f"{DESIGNER}::test_the_largest_variable_is_drawn_until_another_one_is_picked",
        "show": f"{DESIGNER}::test_filters_list_the_variables_that_need_a_look",
        "text": f"{DESIGNER}::test_a_part_of_a_path_finds_variables",
        "page": f"{DESIGNER}::test_hundreds_of_variables_have_pages",
        "batch": f"{DESIGNER}::test_the_batch_can_be_another_one_than_in_the_spec",
        "memory": f"{DESIGNER}::test_the_memory_of_a_device_comes_from_the_pool_or_from_the_field",
        **dict.fromkeys(("teraflops", "link"), _SPEEDS),
    },
    "MeshEstimateIn": {
        "project": f"{ESTIMATES}::test_only_members_request_and_only_those_who_see_the_project_read",
        "spec": f"{ESTIMATES}::test_what_changes_the_step_is_estimated_again",
        **dict.fromkeys(("compile_step", "device_gib"), _ESTIMATED),
        "again": f"{ESTIMATES}::test_a_failed_estimate_is_repeated_on_request_only",
    },
    "DryRunIn": {
        "project": f"{DRY_RUNS}::test_only_people_who_may_submit_compare",
        **dict.fromkeys(
            ("spec", "steps"), f"{DRY_RUNS}::test_the_same_request_returns_the_state_and_then_the_result"
        ),
        "again": f"{DRY_RUNS}::test_a_failed_one_is_repeated_on_request_only",
    },
    "PolicyFilter": {
        "pool": f"{DRY_RUNS}::test_rest_describes_the_devices_of_a_pool",
        "project": f"{DRY_RUNS}::test_its_page_and_the_cards_show_what_was_measured",
    },
    "ReservationFilter": {
        "pool": f"{SHARING}::test_reservations_are_listed_by_pool",
        "ended": _RESERVED,
    },
    "DismissForm": {"kind": _DISMISSED, "row": _DISMISSED, "state": _DISMISSED},
    "UserChange": {
        "hand_tokens_to": f"{DEPARTURE}::test_hands_tokens_over_while_it_deactivates",
        "revoke_tokens": f"{DEPARTURE}::test_names_no_tokens_that_a_change_does_not_concern",
        "accept_changes": f"{DEPARTURE}::test_refuses_changed_rights_and_unknown_people_whole",
    },
    "CastIn": {"dtype": _SMALLER},
    "QuantizeIn": {"mode": _SMALLER},
}
"""By the name of a form or of a request's body, the test that fails if a field has no effect."""
