//! Java's date patterns (`yyyy-MM-dd HH:mm:ss.SSS`), compiled once per constant and then written or read per row.
//!
//! Names are English and weeks are those of the United States, which is what Flink's image has as locale.

use std::fmt::Write as _;

use super::WallTime;
use super::unit::{TimeUnit, iso_day_of_week};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::calendar::{SECONDS_PER_DAY, civil_from_days, days_from_civil, days_in_month};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Pattern {
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    /// A letter and how often it stands there.
    Field(char, usize),
    /// What stands in brackets: written always, read if it is there.
    Optional(Vec<Item>),
}

/// The letters that need an offset or a zone.
const ZONE_LETTERS: &str = "VzOXxZ";
const LETTERS: &str = "yuYMLdDEeQqwWFHhkKmsSaAnNG";

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// It has a letter that means nothing, or a quote or bracket that is not closed.
    pub(in super::super) fn compile(pattern: &str) -> Result<Pattern> {
        let illegal = |message: String| Error::data(message).class(FlinkClass::ILLEGAL_ARGUMENT);
        let mut stack: Vec<Vec<Item>> = vec![Vec::new()];
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            let item = match character {
                '\'' => Item::Literal(quoted(&mut characters).ok_or_else(|| {
                    illegal(format!("Pattern ends with an incomplete string literal: {pattern}"))
                })?),
                '[' => {
                    stack.push(Vec::new());
                    continue;
                }
                ']' => match stack.pop() {
                    Some(items) if !stack.is_empty() => Item::Optional(items),
                    _ => {
                        return Err(illegal(
                            "Pattern invalid as it contains ] without previous [".to_owned(),
                        ));
                    }
                },
                letter if letter.is_ascii_alphabetic() => {
                    let mut count = 1;
                    while characters.next_if_eq(&letter).is_some() {
                        count += 1;
                    }
                    if !LETTERS.contains(letter) && !ZONE_LETTERS.contains(letter) {
                        return Err(illegal(format!("Unknown pattern letter: {letter}")));
                    }
                    Item::Field(letter, count)
                }
                '{' | '}' | '#' => {
                    return Err(illegal(format!("Pattern includes reserved character: '{character}'")));
                }
                other => Item::Literal(other.to_string()),
            };
            if let Some(items) = stack.last_mut() {
                items.push(item);
            }
        }
        // Java closes brackets that are left open.
        while stack.len() > 1 {
            let inner = stack.pop().unwrap_or_default();
            if let Some(items) = stack.last_mut() {
                items.push(Item::Optional(inner));
            }
        }
        Ok(Pattern { items: stack.pop().unwrap_or_default() })
    }

    /// Appends a time on the wall. `zone` is the zone's name and offset, which only instants have.
    ///
    /// # Errors
    /// The pattern asks for a zone and the value has none.
    pub(in super::super) fn format(
        &self,
        wall: WallTime,
        zone: Option<(&str, i64)>,
        out: &mut String,
    ) -> Result<()> {
        format_items(&self.items, wall, zone, out)
    }

    /// Reads a text; None where it does not fit the pattern.
    pub(in super::super) fn parse(&self, text: &str) -> Option<WallTime> {
        let mut fields = Fields::default();
        let rest = parse_items(&self.items, text, &mut fields)?;
        if rest.is_empty() { fields.resolve() } else { None }
    }
}

/// Reads up to the closing quote; two quotes are one, and nothing between quotes is a quote.
fn quoted(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut text = String::new();
    loop {
        match characters.next()? {
            '\'' if characters.next_if_eq(&'\'').is_some() => text.push('\''),
            '\'' if text.is_empty() => return Some("'".to_owned()),
            '\'' => return Some(text),
            other => text.push(other),
        }
    }
}

fn format_items(items: &[Item], wall: WallTime, zone: Option<(&str, i64)>, out: &mut String) -> Result<()> {
    for item in items {
        match item {
            Item::Literal(text) => out.push_str(text),
            Item::Optional(items) => format_items(items, wall, zone, out)?,
            Item::Field(letter, count) if ZONE_LETTERS.contains(*letter) => {
                let (name, offset) = zone.ok_or_else(|| {
                    let field = if *letter == 'V' || *letter == 'z' { "ZoneId" } else { "OffsetSeconds" };
                    Error::data(format!("Unsupported field: {field}")).class(FlinkClass::UNSUPPORTED_TEMPORAL)
                })?;
                format_zone(*letter, *count, name, offset, out);
            }
            Item::Field(letter, count) => format_field(*letter, *count, wall, out),
        }
    }
    Ok(())
}

fn format_zone(letter: char, count: usize, name: &str, offset: i64, out: &mut String) {
    if letter == 'V' || letter == 'z' {
        out.push_str(name);
        return;
    }
    if letter == 'X' && offset == 0 {
        out.push('Z');
        return;
    }
    let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    let (hours, minutes) = (size / 3600, size / 60 % 60);
    let _ = match (letter, count) {
        ('O', _) => write!(out, "GMT{sign}{hours}"),
        ('x' | 'X', 1) if minutes == 0 => write!(out, "{sign}{hours:02}"),
        ('x' | 'X', 3 | 5) | ('Z', 5) => write!(out, "{sign}{hours:02}:{minutes:02}"),
        _ => write!(out, "{sign}{hours:02}{minutes:02}"),
    };
}

/// Appends one field; numbers are padded with zeros to the count of letters.
fn format_field(letter: char, count: usize, wall: WallTime, out: &mut String) {
    let days = wall.days();
    let second = wall.second_of_day();
    let hour = second / 3600;
    let number = match letter {
        'y' | 'u' => TimeUnit::Year.extract(wall),
        'Y' => week_of_year(days).0,
        'w' => week_of_year(days).1,
        'M' | 'L' if count >= 3 => {
            return push_name(MONTHS[TimeUnit::Month.extract(wall) as usize - 1], count, out);
        }
        'M' | 'L' => TimeUnit::Month.extract(wall),
        'd' => TimeUnit::Day.extract(wall),
        'D' => TimeUnit::DayOfYear.extract(wall),
        'E' => return push_name(DAYS[iso_day_of_week(days) as usize - 1], count, out),
        'e' if count >= 3 => return push_name(DAYS[iso_day_of_week(days) as usize - 1], count, out),
        'e' => TimeUnit::DayOfWeek.extract(wall),
        'Q' | 'q' => match (TimeUnit::Quarter.extract(wall), count) {
            (quarter, 1 | 2) => quarter,
            (quarter, 3) => {
                let _ = write!(out, "Q{quarter}");
                return;
            }
            (quarter, _) => {
                out.push_str(
                    ["1st quarter", "2nd quarter", "3rd quarter", "4th quarter"][quarter as usize - 1],
                );
                return;
            }
        },
        'W' => (TimeUnit::Day.extract(wall) + first_weekday_of_month(days) - 1) / 7 + 1,
        'F' => (TimeUnit::Day.extract(wall) - 1) / 7 + 1,
        'H' => hour,
        'k' => (hour + 23) % 24 + 1,
        'K' => hour % 12,
        'h' => (hour + 11) % 12 + 1,
        'm' => second / 60 % 60,
        's' => second % 60,
        'S' => {
            let digits = count.min(9);
            let _ = write!(out, "{:0digits$}", wall.nanos / 10_i64.pow(9 - digits as u32));
            return;
        }
        'A' => second * 1000 + wall.nanos / 1_000_000,
        'n' => wall.nanos,
        'N' => second * 1_000_000_000 + wall.nanos,
        'a' => return out.push_str(if hour < 12 { "AM" } else { "PM" }),
        _ => return out.push_str(if TimeUnit::Year.extract(wall) > 0 { "AD" } else { "BC" }),
    };
    let number =
        if count == 2 && matches!(letter, 'y' | 'u' | 'Y') { number.rem_euclid(100) } else { number };
    let _ = write!(out, "{number:0count$}");
}

/// Appends the first three letters of a name, or all of it where there are four or more pattern letters.
fn push_name(name: &str, count: usize, out: &mut String) {
    match count {
        ..=3 => out.push_str(&name[..3]),
        4 => out.push_str(name),
        _ => out.push_str(&name[..1]),
    }
}

/// Returns how many days into its week, which starts on Sunday, the month's first day is.
fn first_weekday_of_month(days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    (days_from_civil(year, month, 1) + 4).rem_euclid(7)
}

/// Returns year and number of the week: weeks start on Sunday, and the one with January 1 is the first.
fn week_of_year(days: i64) -> (i64, i64) {
    let sunday = days - (days + 4).rem_euclid(7);
    let (year, _, _) = civil_from_days(sunday + 6);
    let first = days_from_civil(year, 1, 1);
    let first_sunday = first - (first + 4).rem_euclid(7);
    (year, (sunday - first_sunday) / 7 + 1)
}

/// What was read so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    hour_of_half: Option<i64>,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
    offset: i64,
}

impl Fields {
    fn resolve(&self) -> Option<WallTime> {
        let year = self.year.unwrap_or(1970);
        let days = match self.day_of_year {
            Some(day) => days_from_civil(year, 1, 1) + day - 1,
            None => {
                let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
                if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
                    return None;
                }
                days_from_civil(year, month, day.min(days_in_month(year, month)))
            }
        };
        let hour = match (self.hour, self.hour_of_half) {
            (Some(hour), _) => hour,
            (None, Some(hour)) => hour % 12 + if self.is_afternoon? { 12 } else { 0 },
            (None, None) => 0,
        };
        let is_time =
            (0..24).contains(&hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second);
        is_time.then(|| WallTime {
            seconds: days * SECONDS_PER_DAY + hour * 3600 + self.minute * 60 + self.second - self.offset,
            nanos: self.nanos,
        })
    }

    fn set(&mut self, letter: char, count: usize, value: i64) -> Option<()> {
        let small = u32::try_from(value).ok();
        match letter {
            'y' | 'u' if count == 2 => self.year = Some(2000 + value),
            'y' | 'u' => self.year = Some(value),
            'M' | 'L' => self.month = Some(small?),
            'd' => self.day = Some(small?),
            'D' => self.day_of_year = Some(value),
            'H' => self.hour = Some(value),
            'k' => self.hour = Some(value % 24),
            'h' | 'K' => self.hour_of_half = Some(value),
            'm' => self.minute = value,
            's' => self.second = value,
            _ => return None,
        }
        Some(())
    }
}

/// Reads the items from the front of a text and returns the rest.
fn parse_items<'a>(items: &[Item], mut text: &'a str, fields: &mut Fields) -> Option<&'a str> {
    for (index, item) in items.iter().enumerate() {
        text = match item {
            Item::Literal(literal) => text.strip_prefix(literal.as_str())?,
            Item::Optional(inner) => parse_items(inner, text, fields).unwrap_or(text),
            Item::Field('M' | 'L', 3..) => {
                let (month, rest) = parse_name(&MONTHS, text)?;
                fields.month = Some(month as u32 + 1);
                rest
            }
            Item::Field('E', _) => parse_name(&DAYS, text)?.1,
            Item::Field('a', _) => {
                let half = text.get(..2)?;
                fields.is_afternoon = Some(half.eq_ignore_ascii_case("PM"));
                if !half.eq_ignore_ascii_case("AM") && fields.is_afternoon == Some(false) {
                    return None;
                }
                &text[2..]
            }
            Item::Field('S', count) => {
                let digits =
                    text.get(..*count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
                fields.nanos = digits.get(..(*count).min(9))?.parse::<i64>().ok()?
                    * 10_i64.pow(9 - (*count).min(9) as u32);
                &text[*count..]
            }
            Item::Field('X' | 'x' | 'Z', _) => {
                let (offset, rest) = parse_offset(text)?;
                fields.offset = offset;
                rest
            }
            Item::Field(letter, count) => {
                let length = number_length(*letter, *count, &items[index + 1..], text)?;
                fields.set(*letter, *count, text[..length].parse().ok()?)?;
                &text[length..]
            }
        };
    }
    Some(text)
}

/// Returns how many digits a number takes: as many as it has letters, or all but those that the fields right behind it need.
fn number_length(letter: char, count: usize, following: &[Item], text: &str) -> Option<usize> {
    let available = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_open = count == 1 || (matches!(letter, 'y' | 'u') && count >= 4);
    if !is_open {
        return (available >= count).then_some(count);
    }
    let mut reserved = 0;
    for item in following {
        match item {
            Item::Field('M' | 'L', 3..) | Item::Field('E' | 'a', _) => break,
            Item::Field(_, count) if *count > 1 => reserved += count,
            _ => break,
        }
    }
    let length = available.saturating_sub(reserved).min(9);
    (length >= count).then_some(length)
}

fn parse_name<'a>(names: &[&str], text: &'a str) -> Option<(usize, &'a str)> {
    let find = |prefix_of: fn(&str) -> &str| {
        names.iter().enumerate().find_map(|(index, name)| {
            let name = prefix_of(name);
            text.get(..name.len())
                .filter(|start| start.eq_ignore_ascii_case(name))
                .map(|_| (index, &text[name.len()..]))
        })
    };
    find(|name| name).or_else(|| find(|name| &name[..3]))
}

/// Reads `Z`, `+hh`, `+hhmm` or `+hh:mm`.
fn parse_offset(text: &str) -> Option<(i64, &str)> {
    if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, rest));
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours: i64 = text.get(1..3)?.parse().ok()?;
    let rest = &text[3..];
    let minutes = rest.strip_prefix(':').unwrap_or(rest);
    match minutes.get(..2).and_then(|digits| digits.parse::<i64>().ok()) {
        Some(value) => Some((sign * (hours * 3600 + value * 60), &minutes[2..])),
        None => Some((sign * hours * 3600, rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(pattern: &str, text: &str) -> String {
        let wall = super::super::parse_timestamp(text).unwrap();
        let mut out = String::new();
        match Pattern::compile(pattern).and_then(|pattern| pattern.format(wall, None, &mut out)) {
            Ok(()) => out,
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn patterns_write_what_java_writes() {
        let text = "2024-03-10 01:30:05.123456";
        assert_eq!(format("yyyy-MM-dd HH:mm:ss.SSS", text), "2024-03-10 01:30:05.123");
        assert_eq!(format("YYYY-MM-DD", text), "2024-03-70");
        assert_eq!(format("EEE, d MMM yy", "2024-03-31 01:30:00"), "Sun, 31 Mar 24");
        assert_eq!(format("yyyyMMdd'T'HHmmss", text), "20240310T013005");
        assert_eq!(format("hh:mm a", "1969-12-31 23:59:59"), "11:59 PM");
        assert_eq!(format("'week' w QQQ DDD", "1969-12-31 00:00:00"), "week 1 Q4 365");
        assert_eq!(format("x", text), "Unsupported field: OffsetSeconds");
        assert_eq!(format("''yy''", text), "'24'");
        assert_eq!(format("i", text), "Unknown pattern letter: i");
    }

    #[test]
    fn patterns_read_back_what_they_write() {
        let read = |pattern: &str, text: &str| Pattern::compile(pattern).unwrap().parse(text);
        let day = |year, month, day| Some(days_from_civil(year, month, day));
        assert_eq!(read("dd/MM/yyyy", "01/02/2024").map(WallTime::days), day(2024, 2, 1));
        assert_eq!(read("yyyyMMdd", "20240229").map(WallTime::days), day(2024, 2, 29));
        assert_eq!(read("d MMM yyyy", "3 Feb 2024").map(WallTime::days), day(2024, 2, 3));
        assert_eq!(read("hh:mm a", "11:30 PM").map(WallTime::second_of_day), Some(84_600));
        assert_eq!(read("yyyy-MM-dd[ HH:mm]", "2024-01-01").map(WallTime::days), day(2024, 1, 1));
        assert_eq!(read("yyyy-MM-dd", "2024-1-1"), None);
        assert_eq!(read("yyyy-MM-dd", "2024-01-01 10"), None);
    }
}
