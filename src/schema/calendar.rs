//! Days, years and zones: the arithmetic below dates and timestamps, without a value type per row.
//!
//! Zones follow java.time: a local time in a gap moves forward by the gap, one in an overlap takes the earlier instant.

use chrono::offset::{LocalResult, Offset, TimeZone};
use chrono::{DateTime, NaiveDateTime};
use chrono_tz::Tz;

/// Milliseconds of a day.
pub const MILLIS_PER_DAY: i64 = 86_400_000;
/// Seconds of a day.
pub const SECONDS_PER_DAY: i64 = 86_400;

/// Returns year, month and day of a count of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * shifted_month + 2) / 5 + 1) as u32;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns the days since 1970-01-01 of a date.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = i64::from((month + 9) % 12);
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns whether a year has a 29th of February.
pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the length of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Adds months to a date and keeps the day inside the month: January 31 and one month is the end of February.
pub fn add_months(days: i64, months: i64) -> i64 {
    let (year, month, day) = civil_from_days(days);
    let count = year * 12 + i64::from(month) - 1 + months;
    let (year, month) = (count.div_euclid(12), count.rem_euclid(12) as u32 + 1);
    days_from_civil(year, month, day.min(days_in_month(year, month)))
}

/// Returns the seconds to add to an instant for the time on the wall.
pub fn offset_at(zone: Tz, utc_seconds: i64) -> i64 {
    if zone == Tz::UTC {
        return 0;
    }
    DateTime::from_timestamp(utc_seconds, 0).map_or(0, |instant| {
        i64::from(zone.offset_from_utc_datetime(&instant.naive_utc()).fix().local_minus_utc())
    })
}

/// Returns the seconds to take from a time on the wall for the instant.
pub fn offset_of_local(zone: Tz, local_seconds: i64) -> i64 {
    if zone == Tz::UTC {
        return 0;
    }
    let Some(local) = DateTime::from_timestamp(local_seconds, 0) else { return 0 };
    offset_of_wall_time(zone, local.naive_utc())
}

/// How far a gap is searched for its start; the longest gap known is a whole day that Samoa left out.
const GAP_QUARTER_HOURS_MAX: i64 = 4 * 26;

/// Finds the offset in force at a local time; in a gap it is the one before the gap.
fn offset_of_wall_time(zone: Tz, local: NaiveDateTime) -> i64 {
    for quarter_hours in 0..GAP_QUARTER_HOURS_MAX {
        let earlier = local - chrono::TimeDelta::minutes(15 * quarter_hours);
        let offset = match zone.offset_from_local_datetime(&earlier) {
            LocalResult::Single(offset) => offset.fix(),
            LocalResult::Ambiguous(first, second) => {
                let (first, second) = (first.fix(), second.fix());
                if first.local_minus_utc() >= second.local_minus_utc() { first } else { second }
            }
            LocalResult::None => continue,
        };
        return i64::from(offset.local_minus_utc());
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse_over_centuries() {
        for days in (-1_000_000..1_000_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
        assert_eq!(civil_from_days(0), (1970, 1, 1));
        assert_eq!(days_from_civil(2024, 2, 29), 19_782);
    }

    #[test]
    fn months_end_is_kept_when_months_are_added() {
        let january = days_from_civil(2024, 1, 31);
        assert_eq!(civil_from_days(add_months(january, 1)), (2024, 2, 29));
        assert_eq!(civil_from_days(add_months(january, -2)), (2023, 11, 30));
    }

    #[test]
    fn a_time_in_the_gap_moves_forward_and_an_overlap_takes_the_earlier_instant() {
        let zone = Tz::Europe__Berlin;
        let gap = days_from_civil(2024, 3, 31) * SECONDS_PER_DAY + 2 * 3600 + 1800;
        let instant = gap - offset_of_local(zone, gap);
        assert_eq!(instant + offset_at(zone, instant), gap + 3600);
        let overlap = days_from_civil(2024, 10, 27) * SECONDS_PER_DAY + 2 * 3600 + 1800;
        assert_eq!(offset_of_local(zone, overlap), 7200);
    }
}
