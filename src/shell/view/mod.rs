//! Table mode and changelog mode: a query's rows full-screen, kept up to date until the user leaves.
//!
//! The query runs on the runtime and feeds the content; this thread only reads keys and draws what the content holds.

mod content;
mod screen;
mod state;

use std::io::{self, Stdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono_tz::Tz;
use futures::StreamExt;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use tokio::runtime::Runtime;

use super::panics;
use super::print::messages;
use crate::error::{Error, FlinkClass, Result};
use crate::options::ResultMode;
use crate::session::QueryResult;
use content::Content;
use state::{Action, ViewState};

/// Which of the two views is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewMode {
    /// The table as it stands.
    Table,
    /// The last changes.
    Changelog,
}

impl ViewMode {
    /// Returns the view of a result mode, or None for plain text.
    ///
    /// # Errors
    /// A batch query has no changes to show.
    pub(crate) fn of_result_mode(mode: ResultMode, is_streaming: bool) -> Result<Option<ViewMode>> {
        match mode {
            ResultMode::Table => Ok(Some(ViewMode::Table)),
            ResultMode::Changelog if is_streaming => Ok(Some(ViewMode::Changelog)),
            ResultMode::Changelog => Err(Error::validation(messages::BATCH_CHANGELOG)
                .class(FlinkClass::CLIENT_EXECUTION)
                .hint("SET 'sql-client.execution.result-mode' = 'tableau';")),
            ResultMode::Tableau => Ok(None),
        }
    }
}

/// How a query is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ViewSettings {
    /// Which view.
    pub(crate) mode: ViewMode,
    /// How many rows table mode keeps.
    pub(crate) rows_max: usize,
    /// The session time zone.
    pub(crate) zone: Tz,
}

/// What the query has brought so far.
#[derive(Debug)]
struct Feed {
    content: Content,
    is_finished: bool,
    error: Option<Error>,
}

/// Shows a query until the user leaves, and cancels it then.
///
/// # Errors
/// The query failed, or the terminal cannot be used.
pub(crate) fn show(query: QueryResult, settings: ViewSettings, runtime: &Runtime) -> Result<()> {
    let columns = Arc::clone(&query.columns);
    let content = Content::new(settings.mode, Arc::clone(&columns), settings.rows_max, settings.zone);
    let feed = Arc::new(Mutex::new(Feed { content, is_finished: false, error: None }));
    let filling = runtime.spawn(fill(query, Arc::clone(&feed)));
    let shown = run_screen(ViewState::new(settings.mode, columns), &feed);
    filling.abort();
    // Waiting makes sure that the query's resources are free when the prompt is back.
    let _ = runtime.block_on(filling);
    shown?;
    match lock(&feed).error.take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Moves the rows of a query into the content.
async fn fill(mut query: QueryResult, feed: Arc<Mutex<Feed>>) {
    let ended = panics::catch_async(async {
        while let Some(batch) = query.stream.next().await.transpose()? {
            lock(&feed).content.add(&batch);
            // Rows that are there at once must not keep this task from being cancelled.
            tokio::task::yield_now().await;
        }
        Ok(())
    })
    .await;
    let mut feed = lock(&feed);
    feed.is_finished = true;
    feed.error = ended.err();
}

/// Locks the feed; a panic of the other side has already become its error.
fn lock(feed: &Mutex<Feed>) -> std::sync::MutexGuard<'_, Feed> {
    feed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal in full-screen mode; dropping it restores what was there.
struct FullScreen(Terminal<CrosstermBackend<Stdout>>);

impl FullScreen {
    /// Enters full-screen mode.
    fn enter() -> Result<FullScreen> {
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        match entered {
            Ok(terminal) => Ok(FullScreen(terminal)),
            Err(error) => {
                let _ = disable_raw_mode();
                Err(error.into())
            }
        }
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// Draws and reads keys until the user leaves or the query fails.
fn run_screen(mut state: ViewState, feed: &Mutex<Feed>) -> Result<()> {
    // Limit: how often a screen is drawn that shows changes as fast as they come.
    const FASTEST: Duration = Duration::from_millis(40);
    let mut screen = FullScreen::enter()?;
    let mut refreshed: Option<Instant> = None;
    loop {
        let is_due = match (refreshed, state.refresh_interval()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(refreshed), Some(interval)) => refreshed.elapsed() >= interval.max(FASTEST),
        };
        if is_due || state.take_refresh_request() {
            let mut feed = lock(feed);
            if feed.error.is_some() {
                return Ok(());
            }
            let is_finished = feed.is_finished;
            let size = screen.0.size()?;
            state.refresh(&mut feed.content, is_finished, size.height);
            refreshed = Some(Instant::now());
        }
        screen.0.draw(|frame| state.draw(frame))?;
        // A finished query is looked at once more at the end of each interval, which costs nothing.
        let wait = state.refresh_interval().unwrap_or(Duration::from_secs(1)).max(FASTEST);
        if event::poll(wait.min(Duration::from_millis(250)))? {
            let action = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => state.key(key),
                Event::Resize(..) => Action::Refresh,
                _ => Action::None,
            };
            match action {
                Action::Quit => return Ok(()),
                Action::Refresh => state.request_refresh(),
                Action::None => {}
            }
        }
    }
}
