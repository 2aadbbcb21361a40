//! Units of time and what FLOOR, CEIL, EXTRACT and TIMESTAMPDIFF do with them.

use super::WallTime;
use crate::schema::calendar::{MILLIS_PER_DAY, add_months, civil_from_days, days_from_civil};

/// A unit that SQL names in EXTRACT, FLOOR, TIMESTAMPADD or TIMESTAMPDIFF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TimeUnit {
    Millennium,
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Epoch,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
}

impl TimeUnit {
    /// Reads a unit's name; the `SQL_TSI_` prefix of TIMESTAMPADD is allowed.
    pub(in super::super) fn parse(text: &str) -> Option<TimeUnit> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SQL_TSI_").unwrap_or(&upper);
        Some(match name {
            "MILLENNIUM" => TimeUnit::Millennium,
            "CENTURY" => TimeUnit::Century,
            "DECADE" => TimeUnit::Decade,
            "YEAR" | "YEARS" => TimeUnit::Year,
            "QUARTER" | "QUARTERS" => TimeUnit::Quarter,
            "MONTH" | "MONTHS" => TimeUnit::Month,
            "WEEK" | "WEEKS" => TimeUnit::Week,
            "DAY" | "DAYS" => TimeUnit::Day,
            "HOUR" | "HOURS" => TimeUnit::Hour,
            "MINUTE" | "MINUTES" => TimeUnit::Minute,
            "SECOND" | "SECONDS" => TimeUnit::Second,
            "MILLISECOND" => TimeUnit::Millisecond,
            "MICROSECOND" => TimeUnit::Microsecond,
            "NANOSECOND" | "FRAC_SECOND" => TimeUnit::Nanosecond,
            "EPOCH" => TimeUnit::Epoch,
            "DOW" => TimeUnit::DayOfWeek,
            "ISODOW" => TimeUnit::IsoDayOfWeek,
            "DOY" => TimeUnit::DayOfYear,
            "ISOYEAR" => TimeUnit::IsoYear,
            _ => return None,
        })
    }

    /// Returns how many months the unit has, if it is one of months.
    pub(in super::super) fn months(self) -> Option<i64> {
        Some(match self {
            TimeUnit::Millennium => 12_000,
            TimeUnit::Century => 1200,
            TimeUnit::Decade => 120,
            TimeUnit::Year => 12,
            TimeUnit::Quarter => 3,
            TimeUnit::Month => 1,
            _ => return None,
        })
    }

    /// Returns how many milliseconds the unit has, if it is one of time.
    pub(in super::super) fn millis(self) -> Option<i64> {
        Some(match self {
            TimeUnit::Week => 7 * MILLIS_PER_DAY,
            TimeUnit::Day => MILLIS_PER_DAY,
            TimeUnit::Hour => 3_600_000,
            TimeUnit::Minute => 60_000,
            TimeUnit::Second => 1000,
            TimeUnit::Millisecond => 1,
            _ => return None,
        })
    }

    /// Returns the unit's value in a time on the wall. EPOCH is that of the wall read as UTC.
    pub(in super::super) fn extract(self, wall: WallTime) -> i64 {
        let second = wall.second_of_day();
        match self {
            TimeUnit::Hour => second / 3600,
            TimeUnit::Minute => second / 60 % 60,
            TimeUnit::Second => second % 60,
            TimeUnit::Millisecond => wall.nanos / 1_000_000,
            TimeUnit::Microsecond => wall.nanos / 1000,
            TimeUnit::Nanosecond => wall.nanos,
            TimeUnit::Epoch => wall.seconds,
            _ => self.extract_date(wall.days()),
        }
    }

    /// Returns the unit's value in a date.
    fn extract_date(self, days: i64) -> i64 {
        let (year, month, day) = civil_from_days(days);
        match self {
            TimeUnit::Millennium => (year + 999).div_euclid(1000),
            TimeUnit::Century => (year + 99).div_euclid(100),
            TimeUnit::Decade => year.div_euclid(10),
            TimeUnit::Year => year,
            TimeUnit::Quarter => i64::from(month.div_ceil(3)),
            TimeUnit::Month => i64::from(month),
            TimeUnit::Week => iso_week(days).1,
            TimeUnit::Day => i64::from(day),
            TimeUnit::DayOfWeek => (days + 4).rem_euclid(7) + 1,
            TimeUnit::IsoDayOfWeek => iso_day_of_week(days),
            TimeUnit::DayOfYear => days - days_from_civil(year, 1, 1) + 1,
            TimeUnit::IsoYear => iso_week(days).0,
            _ => 0,
        }
    }
}

/// Returns the day of the week, Monday being 1.
pub(super) fn iso_day_of_week(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// Returns ISO year and week of a date: the week belongs to the year that has its Thursday.
pub(super) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - iso_day_of_week(days) + 4;
    let (year, _, _) = civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// Returns the first day of the unit that holds the date. Weeks start on Sunday.
pub(in super::super) fn floor_date(unit: TimeUnit, days: i64) -> i64 {
    let (year, month, _) = civil_from_days(days);
    match unit {
        TimeUnit::Week => days - (days + 4).rem_euclid(7),
        TimeUnit::Month => days_from_civil(year, month, 1),
        TimeUnit::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
        TimeUnit::Year => days_from_civil(year, 1, 1),
        TimeUnit::Decade => days_from_civil(year.div_euclid(10) * 10, 1, 1),
        TimeUnit::Century => days_from_civil((year - 1).div_euclid(100) * 100 + 1, 1, 1),
        TimeUnit::Millennium => days_from_civil((year - 1).div_euclid(1000) * 1000 + 1, 1, 1),
        _ => days,
    }
}

/// Returns the date if a unit starts on it, else the first day of the next unit.
pub(in super::super) fn ceil_date(unit: TimeUnit, days: i64) -> i64 {
    let floor = floor_date(unit, days);
    if floor == days {
        return days;
    }
    match (unit, unit.months()) {
        (_, Some(months)) => add_months(floor, months),
        (TimeUnit::Week, None) => floor + 7,
        _ => days,
    }
}

/// Rounds milliseconds on the wall down to the unit.
///
/// Units of days and more look at the day that the quotient truncates to, so before 1970 a time past midnight counts for the
/// next day. Flink does so too.
pub(in super::super) fn floor_timestamp(unit: TimeUnit, wall_millis: i64) -> i64 {
    match unit.millis() {
        Some(millis) if unit != TimeUnit::Week => wall_millis - wall_millis.rem_euclid(millis),
        _ => floor_date(unit, wall_millis / MILLIS_PER_DAY) * MILLIS_PER_DAY,
    }
}

/// Rounds milliseconds on the wall up to the unit; see `floor_timestamp`. The time of day does not push to the next unit of days.
pub(in super::super) fn ceil_timestamp(unit: TimeUnit, wall_millis: i64) -> i64 {
    match unit.millis() {
        Some(millis) if unit != TimeUnit::Week => wall_millis + (-wall_millis).rem_euclid(millis),
        _ => ceil_date(unit, wall_millis / MILLIS_PER_DAY) * MILLIS_PER_DAY,
    }
}

/// Returns the whole months from one time on the wall to another, in milliseconds both.
pub(in super::super) fn months_between(from: i64, to: i64) -> i64 {
    if to < from {
        return -months_between(to, from);
    }
    let (from_days, to_days) = (from.div_euclid(MILLIS_PER_DAY), to.div_euclid(MILLIS_PER_DAY));
    let mut months = whole_months(from_days, to_days);
    let is_short_of_time = to.rem_euclid(MILLIS_PER_DAY) < from.rem_euclid(MILLIS_PER_DAY);
    if is_short_of_time && add_months(from_days, months) == to_days {
        months -= 1;
    }
    months
}

/// Returns the most months that can be added to a date without passing another.
fn whole_months(from_days: i64, to_days: i64) -> i64 {
    // No month is longer than 31 days, so the estimate is never too large.
    let mut months = (to_days - from_days) / 31;
    while add_months(from_days, months) < to_days && add_months(from_days, months + 1) <= to_days {
        months += 1;
    }
    months
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::calendar::SECONDS_PER_DAY;

    fn midnight(days: i64) -> i64 {
        days * SECONDS_PER_DAY
    }

    fn wall(year: i64, month: u32, day: u32, hour: i64) -> WallTime {
        WallTime { seconds: midnight(days_from_civil(year, month, day)) + hour * 3600, nanos: 123_456_000 }
    }

    #[test]
    fn sunday_is_the_first_day_and_weeks_are_iso() {
        let monday = wall(2024, 12, 30, 5);
        assert_eq!(TimeUnit::DayOfWeek.extract(monday), 2);
        assert_eq!(TimeUnit::IsoDayOfWeek.extract(monday), 1);
        assert_eq!(TimeUnit::Week.extract(monday), 1);
        assert_eq!(TimeUnit::IsoYear.extract(monday), 2025);
        assert_eq!(TimeUnit::Decade.extract(monday), 202);
        assert_eq!(TimeUnit::Century.extract(monday), 21);
        assert_eq!(TimeUnit::Millennium.extract(monday), 3);
        assert_eq!(TimeUnit::Microsecond.extract(monday), 123_456);
    }

    #[test]
    fn floor_and_ceil_follow_flink_before_1970() {
        let millis = -500;
        assert_eq!(floor_timestamp(TimeUnit::Month, millis), 0);
        assert_eq!(ceil_timestamp(TimeUnit::Quarter, millis), 0);
        assert_eq!(floor_timestamp(TimeUnit::Day, millis), -MILLIS_PER_DAY);
        assert_eq!(floor_timestamp(TimeUnit::Week, millis), -4 * MILLIS_PER_DAY);
        assert_eq!(ceil_timestamp(TimeUnit::Week, millis), 3 * MILLIS_PER_DAY);
        assert_eq!(ceil_timestamp(TimeUnit::Hour, millis), 0);
    }

    #[test]
    fn months_between_counts_whole_months() {
        let at = |year, month, day| midnight(days_from_civil(year, month, day)) * 1000;
        assert_eq!(months_between(at(2024, 2, 29) + 86_399_999, at(2025, 1, 31)), 11);
        assert_eq!(months_between(at(2021, 1, 3), at(2025, 1, 31)), 48);
        assert_eq!(months_between(at(2024, 1, 31), at(2024, 2, 29)), 1);
        assert_eq!(months_between(at(2024, 2, 1) + 1, at(2024, 1, 1)), -1);
    }
}
