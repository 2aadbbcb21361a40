//! Whether a position means on a server what it meant where it was read. It does only in the server's own log, and there only on the line
//! of history that it lies on: a standby that is promoted goes on with a new line, from wherever it had got to.

use super::position::StreamPosition;
use super::read_plan::ReadPlan;
use crate::connector::postgres::connection::{ReplicationSession, text};
use crate::connector::postgres::pgoutput::Lsn;
use crate::connector::postgres::slot::WAYS_ON;
use crate::error::{Error, Result};

/// Checks that a position means something on a server, and brings it to the server's line of history.
///
/// # Errors
/// It is another server, or one that has lost what was read; the server cannot be asked.
pub(super) async fn check_identity(
    plan: &ReadPlan,
    stream: &mut StreamPosition,
    session: &mut ReplicationSession,
) -> Result<()> {
    let server = plan.server.name();
    let identity = session.identity().clone();
    if stream.system != identity.system_id {
        return Err(Error::rejected(format!(
            "Postgres '{server}' is another server than the one that the job has read: its system identifier is {}, and was {}",
            identity.system_id, stream.system
        ))
        .hint(WAYS_ON));
    }
    if identity.flushed < stream.lsn {
        return Err(Error::rejected(format!(
            "Postgres '{server}' has lost transactions that the job has read: its log ends at {}, and the job has read up to {}",
            identity.flushed, stream.lsn
        ))
        .hint(WAYS_ON));
    }
    if stream.timeline == identity.timeline {
        return Ok(());
    }
    // A line has lines before it only if its number is higher; the first one has no history that could be asked for.
    let history = match stream.timeline < identity.timeline {
        true => {
            let command = format!("TIMELINE_HISTORY {}", identity.timeline);
            let rows = session.query("asking for the history of its timeline", &command).await?;
            text(&rows, 1).unwrap_or_default()
        }
        false => String::new(),
    };
    check_line(server, &history, stream, identity.timeline)?;
    stream.timeline = identity.timeline;
    Ok(())
}

/// Fails unless a position lies before the point where its line of history was left for the server's.
fn check_line(server: &str, history: &str, stream: &StreamPosition, timeline: u32) -> Result<()> {
    let what = match left_at(history, stream.timeline) {
        Some(left) if stream.lsn <= left => return Ok(()),
        Some(left) => format!("which was left at {left}, and the job has read up to {}", stream.lsn),
        None => "which is not a part of it".to_owned(),
    };
    Err(Error::rejected(format!(
        "Postgres '{server}' has lost transactions that the job has read: it is on timeline {timeline} of its history now, the job has read timeline {}, {what}",
        stream.timeline
    ))
    .hint(WAYS_ON))
}

/// Returns where a line was left, by a history: for each line before, in order, its number, the position, and why.
fn left_at(history: &str, timeline: u32) -> Option<Lsn> {
    history.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let number: u32 = words.next()?.parse().ok()?;
        let position = pgwire_replication::Lsn::parse(words.next()?).ok()?;
        (number == timeline).then(|| Lsn(position.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    const HISTORY: &str = "1\t0/5000000\tno recovery target specified\n\n# by hand\n2\t0/7000000\tbefore 2000-01-01 00:00:00+00\n";

    fn at(timeline: u32, lsn: u64) -> StreamPosition {
        StreamPosition { system: "7".to_owned(), timeline, slot: "s".to_owned(), lsn: Lsn(lsn), within: None }
    }

    #[test]
    fn a_position_is_gone_on_from_if_its_line_of_history_was_left_behind_it() {
        for (timeline, lsn) in [(1, 0x4FF_FFFF), (1, 0x500_0000), (2, 0x700_0000)] {
            assert!(check_line("h", HISTORY, &at(timeline, lsn), 3).is_ok(), "{timeline} {lsn}");
        }
    }

    #[test]
    fn a_position_behind_the_point_where_its_line_was_left_is_refused() {
        let error = check_line("h", HISTORY, &at(1, 0x500_0100), 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rejected);
        assert_eq!(
            error.message(),
            "Postgres 'h' has lost transactions that the job has read: it is on timeline 3 of its history now, the job has read timeline 1, which was left at 0/5000000, and the job has read up to 0/5000100"
        );
        assert_eq!(error.hint_text(), Some(WAYS_ON));
        // As on a server that was brought back to an earlier line.
        let error = check_line("h", "", &at(2, 0x100), 1).unwrap_err();
        assert!(error.message().ends_with("which is not a part of it"), "{error}");
    }
}
