//! Readers of a real server, without a job: what they hand on, from which positions they go on, and what they say.

mod left_slots;
mod lost_positions;
mod new_tables;
mod reading_job;
mod retries;
mod shown_positions;
