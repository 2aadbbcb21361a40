//! The bar that shows how far a batch query is, on a terminal, once it has taken a while. It stands below what is printed and is gone
//! when the query ends.
//!
//! It is painted by a task of its own: the thread that waits for rows may be busy with them.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::print::console::Console;
use super::progress::grouped;
use crate::session::{ProgressProbe, QueryProgress};

/// A query that is faster shows no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the bar is painted.
const PAUSE: Duration = Duration::from_millis(200);

/// The bar's length.
const BAR_CELLS: usize = 30;

/// Paints until the query has ended.
pub(crate) struct QueryPainter {
    console: Arc<Console>,
    task: JoinHandle<()>,
}

impl QueryPainter {
    /// Starts to paint, if there is something to paint, and a terminal to paint on.
    pub(crate) fn start(
        runtime: &Runtime,
        console: &Arc<Console>,
        progress: Option<ProgressProbe>,
    ) -> Option<QueryPainter> {
        let progress = progress.filter(|_| console.paints())?;
        Some(QueryPainter::start_after(PATIENCE, runtime, console, progress))
    }

    /// Starts to paint after a while.
    fn start_after(
        patience: Duration,
        runtime: &Runtime,
        console: &Arc<Console>,
        progress: ProgressProbe,
    ) -> QueryPainter {
        let painted = Arc::clone(console);
        let task = runtime.spawn(async move {
            let started = Instant::now();
            let mut ticks = interval_at(started + patience, PAUSE);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                painted.paint(vec![line(progress(), started.elapsed())]);
            }
        });
        QueryPainter { console: Arc::clone(console), task }
    }

    /// Stops, and takes the bar away.
    pub(crate) fn finish(self, runtime: &Runtime) {
        self.task.abort();
        // A bar that is just being painted must be there before it can be taken away.
        let _ = runtime.block_on(self.task);
        self.console.paint(Vec::new());
    }
}

/// Returns what is painted.
fn line(progress: QueryProgress, elapsed: Duration) -> String {
    let mut parts = vec![format!("{} rows read", grouped(progress.rows))];
    if progress.bytes > 0 {
        parts.push(size(progress.bytes));
    }
    parts.push(format!("{} s", elapsed.as_secs()));
    let text = parts.join(", ");
    match progress.fraction {
        Some(fraction) => {
            let done = (fraction * BAR_CELLS as f64) as usize;
            let bar = format!("{}{}", "#".repeat(done), "-".repeat(BAR_CELLS - done));
            format!("[{bar}] {:3} %  {text}", (fraction * 100.0) as u64)
        }
        None => text,
    }
}

/// Writes a number of bytes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::shell::print::console::tests::captured;

    #[test]
    fn a_bar_shows_what_is_known() {
        let line = |rows, bytes, fraction| {
            line(QueryProgress { rows, bytes, fraction }, Duration::from_millis(3_700))
        };
        assert_eq!(
            line(1_234_567, 98_765_432, Some(0.5)),
            "[###############---------------]  50 %  1 234 567 rows read, 98 MB, 3 s"
        );
        assert_eq!(line(7, 0, Some(1.0)), "[##############################] 100 %  7 rows read, 3 s");
        assert_eq!(line(7, 1_500_000_000, None), "7 rows read, 1.5 GB, 3 s");
        assert_eq!(line(0, 999, None), "0 rows read, 0 kB, 3 s");
    }

    #[test]
    fn the_bar_is_gone_before_anything_else_is_printed() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let (console, out, err) = captured(false);
        let console = Arc::new(console);
        let (seen, asked) = mpsc::channel();
        let progress: ProgressProbe = Arc::new(move || {
            seen.send(()).unwrap_or(());
            QueryProgress { rows: 5, bytes: 0, fraction: None }
        });
        let painter = QueryPainter::start_after(Duration::ZERO, &runtime, &console, progress);
        asked.recv().unwrap();
        painter.finish(&runtime);
        console.write("1 row in set\n");
        assert_eq!(out.text(), "1 row in set\n");
        assert!(err.text().ends_with("5 rows read, 0 s\n\x1b[1F\x1b[J"), "{:?}", err.text());
    }

    #[test]
    fn nothing_is_painted_where_there_is_no_terminal() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (console, ..) = captured(false);
        let progress: ProgressProbe = Arc::new(|| QueryProgress { rows: 0, bytes: 0, fraction: None });
        assert!(QueryPainter::start(&runtime, &Arc::new(console), Some(progress)).is_none());
    }
}
