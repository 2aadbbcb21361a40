//! The lines of a full-screen view, laid out as Flink's client does.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::ViewMode;
use super::content::cells;
use super::state::{Overlay, ShownRow, ViewState};
use crate::shell::print::layout::display_width;
use crate::shell::print::tableau::{push_screen_cell, push_screen_row};

const INVERSE: Style = Style::new().add_modifier(Modifier::REVERSED);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const UNDERLINED: Style = Style::new().add_modifier(Modifier::UNDERLINED);

/// Keys and what they do, in the order of the help lines: first above second, then the next column.
const TABLE_KEYS: &[(&str, &str)] = &[
    ("Q", "Quit"),
    ("R", "Refresh"),
    ("+", "Inc Refresh"),
    ("-", "Dec Refresh"),
    ("G", "Goto Page"),
    ("L", "Last Page"),
    ("N", "Next Page"),
    ("P", "Prev Page"),
    ("O", "Open Row"),
];
const CHANGELOG_KEYS: &[(&str, &str)] =
    &[("Q", "Quit"), ("R", "Refresh"), ("+", "Inc Refresh"), ("-", "Dec Refresh"), ("O", "Open Row")];

/// Draws a view.
pub(super) fn draw(state: &ViewState, frame: &mut Frame<'_>) {
    let area = frame.area();
    if let Overlay::Row { row, scroll } = &state.overlay {
        draw_row(state, row, *scroll, area, frame);
        return;
    }
    let width = usize::from(area.width);
    let mut lines = vec![title(state, width), status(state, width), Line::default(), header(state)];
    lines.extend(
        state.rows.iter().enumerate().map(|(index, row)| row_line(state, row, Some(index) == state.selected)),
    );
    let scroll = u16::try_from(state.scroll).unwrap_or(u16::MAX);
    draw_frame(lines, scroll, help(state.mode, width), area, frame);
    if let Overlay::GotoPage(digits) = &state.overlay {
        draw_page_dialog(state, digits, area, frame);
    }
}

/// Draws the lines at the top, of which all but the first three scroll sideways, and the help at the bottom.
fn draw_frame(mut lines: Vec<Line<'_>>, scroll: u16, help: Vec<Line<'_>>, area: Rect, frame: &mut Frame<'_>) {
    let help_height = u16::try_from(help.len()).unwrap_or(0).min(area.height);
    let body_height = area.height - help_height;
    let body = lines.split_off(lines.len().min(3));
    let top_height = 3.min(body_height);
    let part = |y: u16, height: u16| Rect { y: area.y + y, height, ..area };
    frame.render_widget(Paragraph::new(lines), part(0, top_height));
    // One line stays empty above the help.
    let rows_height = (body_height - top_height).saturating_sub(1);
    frame.render_widget(Paragraph::new(body).scroll((0, scroll)), part(top_height, rows_height));
    frame.render_widget(Paragraph::new(help), part(body_height, help_height));
}

/// Draws one row, field by field.
fn draw_row(state: &ViewState, row: &str, scroll: u16, area: Rect, frame: &mut Frame<'_>) {
    let mut lines = Vec::new();
    for (column, cell) in state.columns.iter().zip(cells(row)) {
        lines.push(Line::styled(format!(" {} ({}):", column.name, column.data_type.summary()), BOLD));
        lines.push(Line::raw(format!(" {cell}")));
        lines.push(Line::default());
    }
    let part = |y: u16, height: u16| Rect { y: area.y + y.min(area.height), height, ..area };
    let title = Line::styled(centred("Row Summary", usize::from(area.width)), INVERSE);
    frame.render_widget(Paragraph::new(title), part(0, 1.min(area.height)));
    let body_height = area.height.saturating_sub(3);
    frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)), part(2, body_height));
    let help = Line::raw("Press Q to go back.");
    frame.render_widget(Paragraph::new(help), part(area.height.saturating_sub(1), 1.min(area.height)));
}

/// Draws the field for a page number.
fn draw_page_dialog(state: &ViewState, digits: &str, area: Rect, frame: &mut Frame<'_>) {
    let question = format!("Enter page number: [1 to {}]", state.page_count);
    let width = u16::try_from(question.len() + 4).unwrap_or(area.width).min(area.width);
    let height = 4.min(area.height);
    let dialog =
        Rect { x: (area.width - width) / 2, y: area.height.saturating_sub(height) / 2, width, height };
    frame.render_widget(Clear, dialog);
    let lines = vec![Line::raw(question), Line::raw(format!("> {digits}"))];
    frame.render_widget(Paragraph::new(lines).block(Block::bordered()), dialog);
}

/// Returns the first line.
fn title(state: &ViewState, width: usize) -> Line<'static> {
    let text = match state.mode {
        ViewMode::Table => "SQL Query Result (Table)",
        ViewMode::Changelog => "SQL Query Result (Changelog)",
    };
    Line::styled(centred(text, width), INVERSE)
}

/// Returns the second line: what goes on, the page, and when it was drawn.
fn status(state: &ViewState, width: usize) -> Line<'static> {
    let left = if state.is_finished {
        " Table program finished.".to_owned()
    } else {
        format!(" Refresh: {}", state.interval_text())
    };
    let right = format!("Updated: {} ", state.updated.as_deref().unwrap_or("Unknown"));
    let middle = match (state.mode, state.page) {
        (ViewMode::Changelog, _) => String::new(),
        (ViewMode::Table, Some(page)) => format!("Page: {page} of {}", state.page_count),
        (ViewMode::Table, None) => format!("Page: Last of {}", state.page_count),
    };
    let mut text = left;
    pad_to(&mut text, width.saturating_sub(middle.len()) / 2);
    text.push_str(&middle);
    pad_to(&mut text, width.saturating_sub(right.len()));
    text.push_str(&right);
    Line::styled(text, INVERSE)
}

/// Returns the names of the columns, underlined.
fn header(state: &ViewState) -> Line<'static> {
    let kind = (state.mode == ViewMode::Changelog).then_some(("op", 2));
    let columns =
        state.columns.iter().zip(&state.widths).map(|(column, width)| (column.name.as_str(), *width));
    let mut spans = Vec::new();
    for (name, width) in kind.into_iter().chain(columns) {
        let mut cell = String::new();
        push_screen_cell(&mut cell, name, width);
        spans.extend([Span::raw(" "), Span::styled(cell, UNDERLINED)]);
    }
    Line::from(spans)
}

/// Returns the line of a row.
fn row_line(state: &ViewState, row: &ShownRow, is_selected: bool) -> Line<'static> {
    let mut text = String::new();
    push_screen_row(row.kind, cells(&row.text).zip(state.widths.iter().copied()), &mut text);
    let style = match (is_selected, row.is_new) {
        (true, _) => INVERSE,
        (false, true) => BOLD,
        (false, false) => Style::new(),
    };
    Line::styled(text, style)
}

/// Returns the two lines of help. Columns share the width evenly.
fn help(mode: ViewMode, width: usize) -> Vec<Line<'static>> {
    let keys = if mode == ViewMode::Table { TABLE_KEYS } else { CHANGELOG_KEYS };
    let column_width = width.saturating_sub(1) / keys.len().div_ceil(2);
    let mut lines = [Vec::new(), Vec::new()];
    for (index, (key, does)) in keys.iter().enumerate() {
        let blanks = column_width.saturating_sub(key.len() + 1 + does.len());
        lines[index % 2]
            .extend([Span::styled(*key, INVERSE), Span::raw(format!(" {does}{}", " ".repeat(blanks)))]);
    }
    lines.into_iter().map(Line::from).collect()
}

/// Returns a text in the middle of a line of the given width.
fn centred(text: &str, width: usize) -> String {
    let mut line = String::new();
    pad_to(&mut line, width.saturating_sub(display_width(text)) / 2);
    line.push_str(text);
    pad_to(&mut line, width);
    line
}

/// Appends blanks up to a width.
fn pad_to(text: &mut String, width: usize) {
    let missing = width.saturating_sub(display_width(text));
    text.push_str(&" ".repeat(missing));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::super::content::Content;
    use super::super::state::Action;
    use super::*;
    use crate::changelog::{ChangelogBatch, RowKind};
    use crate::schema::TypeRoot;
    use crate::session::ResultColumn;

    const HEIGHT: u16 = 50;

    fn view(
        mode: ViewMode,
        names: Vec<Option<&str>>,
        counts: Vec<i64>,
        kinds: &[RowKind],
    ) -> (ViewState, Content) {
        let columns = Arc::new(vec![
            ResultColumn { name: "name".to_owned(), data_type: TypeRoot::STRING.nullable() },
            ResultColumn { name: "n".to_owned(), data_type: TypeRoot::BigInt.not_null() },
        ]);
        let mut content = Content::new(mode, Arc::clone(&columns), 1_000_000, chrono_tz::Tz::UTC);
        let arrays: [(&str, ArrayRef); 2] =
            [("name", Arc::new(StringArray::from(names))), ("n", Arc::new(Int64Array::from(counts)))];
        let rows = RecordBatch::try_from_iter(arrays).unwrap();
        content.add(&ChangelogBatch::with_kinds(rows, kinds.iter().copied()));
        let mut state = ViewState::new(mode, columns);
        state.refresh(&mut content, true, HEIGHT);
        state.updated = Some("20:13:29.330".to_owned());
        (state, content)
    }

    fn lines(state: &ViewState) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(100, HEIGHT)).unwrap();
        terminal.draw(|frame| state.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line =
            |y: u16| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..HEIGHT).map(line).collect()
    }

    fn press(state: &mut ViewState, code: KeyCode) -> Action {
        state.key(KeyEvent::from(code))
    }

    #[test]
    fn table_mode_looks_as_in_flink() {
        let kinds = [RowKind::Insert; 2];
        let (mut state, _) = view(ViewMode::Table, vec![None, Some("x")], vec![2, 1], &kinds);
        let shown = lines(&state);
        assert_eq!(shown[0], "                                      SQL Query Result (Table)");
        assert_eq!(
            shown[1],
            " Table program finished.                  Page: Last of 1                     Updated: 20:13:29.330"
        );
        assert_eq!(shown[2], "");
        assert_eq!(shown[3], "                           name                    n");
        assert_eq!(shown[4], "                         <NULL>                    2");
        assert_eq!(shown[5], "                              x                    1");
        assert_eq!(
            shown[48],
            "Q Quit             + Inc Refresh      G Goto Page        N Next Page        O Open Row"
        );
        assert_eq!(shown[49], "R Refresh          - Dec Refresh      L Last Page        P Prev Page");

        press(&mut state, KeyCode::Down);
        press(&mut state, KeyCode::Char('o'));
        let row = lines(&state);
        assert_eq!(row[0], "                                            Row Summary");
        assert_eq!(row[2..7], [" name (STRING):", " <NULL>", "", " n (BIGINT NOT NULL):", " 2"]);
        assert_eq!(row[49], "Press Q to go back.");
        assert_eq!(press(&mut state, KeyCode::Char('q')), Action::None);
        assert_eq!(press(&mut state, KeyCode::Char('q')), Action::Quit);
    }

    #[test]
    fn changelog_mode_looks_as_in_flink() {
        let kinds = [RowKind::Insert, RowKind::Insert, RowKind::UpdateBefore, RowKind::UpdateAfter];
        let names = vec![Some("a"), Some("b"), Some("a"), Some("a")];
        let (state, _) = view(ViewMode::Changelog, names, vec![1, 1, 1, 2], &kinds);
        let shown = lines(&state);
        assert_eq!(shown[0], "                                    SQL Query Result (Changelog)");
        assert_eq!(
            shown[1],
            " Table program finished.                                                      Updated: 20:13:29.330"
        );
        assert_eq!(shown[3], " op                           name                    n");
        assert_eq!(shown[6], " -U                              a                    1");
        assert_eq!(shown[48], "Q Quit                           + Inc Refresh                    O Open Row");
        assert_eq!(shown[49], "R Refresh                        - Dec Refresh");
    }

    #[test]
    fn pages_are_turned_and_the_last_one_is_followed() {
        let counts: Vec<i64> = (0..100).collect();
        let (mut state, mut content) =
            view(ViewMode::Table, vec![Some("x"); 100], counts, &[RowKind::Insert; 100]);
        assert_eq!(state.page_count, 3);
        let first = |state: &mut ViewState, content: &mut Content| {
            state.refresh(content, true, HEIGHT);
            lines(state)[4].split_whitespace().last().unwrap().to_owned()
        };
        assert_eq!(first(&mut state, &mut content), "86");
        assert_eq!(press(&mut state, KeyCode::Char('p')), Action::Refresh);
        assert_eq!(first(&mut state, &mut content), "43");
        press(&mut state, KeyCode::Char('g'));
        assert!(lines(&state).iter().any(|line| line.contains("Enter page number: [1 to 3]")));
        press(&mut state, KeyCode::Char('1'));
        assert_eq!(press(&mut state, KeyCode::Enter), Action::Refresh);
        assert_eq!(first(&mut state, &mut content), "0");
        assert!(lines(&state)[1].contains("Page: 1 of 3"));
        press(&mut state, KeyCode::Char('l'));
        assert_eq!(first(&mut state, &mut content), "86");
    }

    #[test]
    fn a_screen_of_any_size_is_drawn() {
        let (state, _) = view(ViewMode::Table, vec![Some("x")], vec![1], &[RowKind::Insert]);
        for (width, height) in [(1, 1), (10, 3), (40, 8), (300, 80)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| state.draw(frame)).unwrap();
        }
    }
}
