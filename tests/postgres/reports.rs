//! What readers of Postgres' changes are reported to do wrong, by the numbers of our collection of such reports, and the test that would
//! see it here; or why it cannot happen.

use std::fs;
use std::path::Path;

/// How a report is dealt with.
enum Answer {
    /// A test in this folder or in the connector's own: its file and name.
    Test(&'static str, &'static str),
    /// It cannot arise.
    Never(&'static str),
}

use Answer::{Never, Test};

/// The numbers of the reports that are about Postgres, or about every source.
const NUMBERS: &[u32] = &[
    1, 2, 3, 4, 5, 9, 10, 11, 12, 14, 15, 21, 22, 23, 24, 25, 26, 27, 36, 38, 41, 42, 43, 44, 45, 46, 47, 51,
    53, 54, 55, 56, 57, 58,
];

const ANSWERS: &[(u32, &str, Answer)] = &[
    (
        1,
        "the log grows while tables are idle",
        Test("connections", "an_idle_database_does_not_hold_what_others_write"),
    ),
    (
        2,
        "what was acknowledged is not in the checkpoint",
        Test("truth/mod", "the_lake_says_what_postgres_says_whatever_happens"),
    ),
    (
        2,
        "the same, without checkpoints",
        Test("connections", "nothing_is_acknowledged_before_a_checkpoint_holds_it"),
    ),
    (
        3,
        "transactions that share positions are dropped",
        Test("changes", "transactions_that_share_positions_survive_kills_between_them"),
    ),
    (
        4,
        "large values become NULL or a placeholder",
        Test("changes", "large_values_that_an_update_leaves_out_stay_under_the_default_identity"),
    ),
    (
        4,
        "the same under FULL",
        Test("changes", "large_values_that_an_update_leaves_out_stay_under_full_identity"),
    ),
    (
        5,
        "no earlier version of a row",
        Test(
            "changes",
            "a_table_without_full_identity_is_refused_with_the_statement_to_run_and_taken_as_upserts",
        ),
    ),
    (
        9,
        "infinity, BC and NaN crash",
        Test("values", "a_value_that_the_type_does_not_have_fails_the_job_by_name"),
    ),
    (9, "the same as cells", Test("values", "values_are_the_same_cells_before_and_after_the_slot")),
    (
        10,
        "decimals without precision lose digits",
        Test("values", "decimals_without_a_scale_keep_their_digits"),
    ),
    (
        11,
        "the slot seems active after a crash",
        Test("slots", "a_slot_that_seems_to_be_in_use_is_waited_for"),
    ),
    (
        12,
        "a dropped slot is retried or made anew",
        Test("slots", "a_slot_that_was_dropped_fails_the_job_and_a_new_snapshot_replaces_its_table"),
    ),
    (
        12,
        "so is an invalidated one",
        Test("slots", "a_slot_whose_log_was_removed_fails_the_job_and_a_new_snapshot_replaces_its_table"),
    ),
    (
        14,
        "changes of a key in one flush are reordered",
        Test("changes", "a_key_has_what_its_last_change_of_a_transaction_says"),
    ),
    (
        15,
        "a change of the key leaves the old row",
        Test("changes", "a_key_has_what_its_last_change_of_a_transaction_says"),
    ),
    (21, "chunks of text keys overlap", Test("patterns", "keys_are_compared_as_the_database_compares_them")),
    (
        21,
        "chunks lose or repeat rows",
        Test("patterns", "chunks_of_every_kind_of_key_hold_each_row_once_while_rows_change"),
    ),
    (
        22,
        "a publication without the table, or clobbered",
        Test("slots", "a_publication_is_extended_only_if_it_is_ours"),
    ),
    (
        22,
        "a publication that leaves changes out",
        Test("slots", "a_publication_that_leaves_changes_out_is_refused"),
    ),
    (23, "partitioned tables give no events", Test("patterns", "a_partitioned_table_is_read_as_one")),
    (24, "slots are used up", Test("slots", "all_tables_of_a_job_share_one_slot")),
    (
        25,
        "the server gives the connection up under back-pressure",
        Test("connections", "a_stream_stays_open_while_nobody_takes_its_rows"),
    ),
    (
        26,
        "old rows and keys are mistaken for each other",
        Test("changes", "rows_without_a_key_are_taken_away_one_at_a_time"),
    ),
    (27, "TRUNCATE is ignored", Test("changes", "truncate_fails_the_job_by_name_unless_told_otherwise")),
    (27, "or is said to be deletes", Test("truncation", "a_truncate_takes_all_rows_away_at_its_place")),
    (
        36,
        "tables that are new are never read first",
        Test("patterns", "a_shard_that_comes_later_is_read_from_its_beginning_or_said_not_to_be"),
    ),
    (
        38,
        "deletes miss rows of their own commit",
        Test("changes", "a_key_has_what_its_last_change_of_a_transaction_says"),
    ),
    (
        38,
        "a commit is made twice after a restart",
        Test("tutorial", "a_killed_job_goes_on_without_a_row_twice"),
    ),
    (41, "secrets in logs, plans and errors", Test("privileges", "no_password_is_said_or_kept")),
    (
        42,
        "passwords with special characters",
        Test("privileges", "a_role_with_the_least_grants_reads_and_makes_its_slot"),
    ),
    (
        43,
        "another server after a failover",
        Test("slots", "another_server_in_the_place_of_the_first_is_refused"),
    ),
    (
        44,
        "a temporary slot ends with a connection that only set it up",
        Test("slots", "exploring_takes_a_slot_that_goes_with_the_query"),
    ),
    (
        45,
        "one line in the log for each attempt",
        Test("connections", "a_server_that_is_away_is_said_to_be_once"),
    ),
    (
        46,
        "two readers of a slot acknowledge for each other",
        Test("slots", "another_job_on_a_slot_is_refused"),
    ),
    (46, "two tables of a job do", Test("slots", "all_tables_of_a_job_share_one_slot")),
    (
        47,
        "a new snapshot leaves rows that are gone",
        Test("slots", "a_slot_that_was_dropped_fails_the_job_and_a_new_snapshot_replaces_its_table"),
    ),
    (
        51,
        "sources that do not have the earlier version",
        Test(
            "changes",
            "a_table_without_full_identity_is_refused_with_the_statement_to_run_and_taken_as_upserts",
        ),
    ),
    (
        51,
        "an update is encoded as delete and create",
        Never("rows are never encoded between source and sink: they travel with their kind"),
    ),
    (53, "settings of the session change texts", Test("values", "settings_of_a_role_change_no_value")),
    (
        54,
        "names with upper case, quotes and dots",
        Test("patterns", "names_may_have_upper_case_quotes_dots_and_blanks"),
    ),
    (
        55,
        "a stream that stalls looks healthy",
        Test("connections", "a_stream_that_says_nothing_any_more_is_opened_anew"),
    ),
    (
        56,
        "a position older than the slot's is forwarded",
        Test("slots", "a_slot_that_was_moved_beyond_the_checkpoint_fails_the_job"),
    ),
    (
        57,
        "nothing is acknowledged after a restart",
        Test("slots", "a_server_that_starts_again_is_met_again_and_acknowledged_to"),
    ),
    (58, "a snapshot alone leaves a slot", Test("slots", "a_snapshot_alone_takes_no_slot_and_ends")),
];

#[test]
fn every_report_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres");
    let mut wrong = Vec::new();
    for (number, what, answer) in ANSWERS {
        match answer {
            Test(file, name) => {
                let text = fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap_or_default();
                if !text.contains(&format!("#[test]\nfn {name}()")) {
                    wrong.push(format!("{number} ({what}): {file}.rs has no test {name}"));
                }
            }
            Never(why) => assert!(!why.is_empty()),
        }
    }
    let answered = |number: &u32| ANSWERS.iter().any(|(answered, ..)| answered == number);
    wrong.extend(
        NUMBERS.iter().filter(|number| !answered(number)).map(|number| format!("{number} has no answer")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
