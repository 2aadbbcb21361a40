//! The session time zone: `default` is the system's, names are those of the time zone database, and `GMT+08:00` is a fixed
//! offset.
//!
//! Fixed offsets of whole hours are zones of the database too, named `Etc/GMT-8`: their sign is the other way round.

use std::path::Path;

use chrono_tz::Tz;

use super::{SessionConfig, TABLE_LOCAL_TIME_ZONE};
use crate::error::{Error, Result};

/// Returns the session time zone.
///
/// # Errors
/// `table.local-time-zone` names no zone; Flink's text.
pub fn time_zone(config: &SessionConfig) -> Result<Tz> {
    parse_time_zone(&config.get(&TABLE_LOCAL_TIME_ZONE)?)
}

/// Reads the name of a zone.
fn parse_time_zone(text: &str) -> Result<Tz> {
    if text == "default" {
        return Ok(system_time_zone());
    }
    if let Some(offset) = ["GMT", "UTC", "UT"].iter().find_map(|prefix| text.strip_prefix(prefix)) {
        let Some(minutes) = parse_offset(offset) else { return named_zone(text) };
        if let Some(zone) = fixed_offset(minutes) {
            return Ok(zone);
        }
        return Err(invalid_zone().hint(format!(
            "'{text}' is valid, but only offsets of whole hours from -12:00 to +14:00 are supported here; name a region such as 'Asia/Kolkata' instead."
        )));
    }
    named_zone(text)
}

/// Finds a zone of the database. Abbreviations such as PST, which the database keeps for old data, are no regions.
fn named_zone(text: &str) -> Result<Tz> {
    let is_region = text.contains('/') || matches!(text, "UTC" | "GMT" | "UCT" | "Zulu") || text.len() > 4;
    text.parse::<Tz>().ok().filter(|_| is_region).ok_or_else(|| {
        let error = invalid_zone();
        match super::nearest(text, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())) {
            Some(near) => error.hint(format!("'table.local-time-zone' is '{text}'. Did you mean '{near}'?")),
            None => error.hint(format!("'table.local-time-zone' is '{text}'.")),
        }
    })
}

/// Builds Flink's error for a zone that is none.
fn invalid_zone() -> Error {
    Error::validation(
        "Invalid time zone. The value should be a Time Zone Database (TZDB) ID such as 'America/Los_Angeles' to include daylight saving time. Fixed offsets are supported using 'GMT-03:00' or 'GMT+03:00'. Or use 'UTC' without time zone and daylight saving time.",
    )
}

/// Reads `+08:00`, `-3` or `+0530` as minutes; None where it is no offset.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let is_number =
        |text: &str| !text.is_empty() && text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Returns the zone of a fixed offset, where the database has one.
fn fixed_offset(minutes: i32) -> Option<Tz> {
    if minutes == 0 {
        return Some(Tz::UTC);
    }
    let hours = (minutes % 60 == 0).then_some(minutes / 60)?;
    let sign = if hours > 0 { '-' } else { '+' };
    format!("Etc/GMT{sign}{}", hours.abs()).parse().ok()
}

/// Returns the system's zone: what TZ says, or where /etc/localtime points to. UTC where neither names a zone.
fn system_time_zone() -> Tz {
    let from_variable = std::env::var("TZ").ok().and_then(|zone| zone.trim_start_matches(':').parse().ok());
    from_variable.or_else(|| zone_of_link(&std::fs::read_link("/etc/localtime").ok()?)).unwrap_or(Tz::UTC)
}

/// Reads the zone off a path into the time zone database.
fn zone_of_link(target: &Path) -> Option<Tz> {
    let (_, name) = target.to_str()?.split_once("zoneinfo/")?;
    name.trim_start_matches("posix/").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tz> {
        parse_time_zone(text)
    }

    #[test]
    fn zones_are_regions_or_whole_hours_from_gmt() {
        assert_eq!(parse("America/Los_Angeles").unwrap(), Tz::America__Los_Angeles);
        assert_eq!(parse("UTC").unwrap(), Tz::UTC);
        assert_eq!(parse("GMT+08:00").unwrap(), Tz::Etc__GMTMinus8);
        assert_eq!(parse("GMT-03:00").unwrap(), Tz::Etc__GMTPlus3);
        assert_eq!(parse("GMT+00:00").unwrap(), Tz::UTC);
        assert_eq!(parse("Etc/GMT-8").unwrap(), Tz::Etc__GMTMinus8);
    }

    #[test]
    fn what_names_no_zone_has_flinks_text() {
        for text in ["Nowhere/City", "PST", "EST", "", "GMT+", "GMT+25:00", "GMT+ü:00", "+08:00"] {
            assert!(parse(text).unwrap_err().message().starts_with("Invalid time zone."), "{text}");
        }
        assert!(parse("GMT+05:30").unwrap_err().hint_text().unwrap().contains("whole hours"));
    }

    #[test]
    fn the_systems_zone_is_where_the_link_points_to() {
        assert_eq!(zone_of_link(Path::new("/usr/share/zoneinfo/Europe/Berlin")), Some(Tz::Europe__Berlin));
        assert_eq!(zone_of_link(Path::new("../usr/share/zoneinfo/posix/UTC")), Some(Tz::UTC));
        assert_eq!(zone_of_link(Path::new("/etc/other")), None);
    }
}
