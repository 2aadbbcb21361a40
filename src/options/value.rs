//! The texts that options take: durations, sizes, booleans, enums, lists and maps, as Flink reads them.

use std::time::Duration;

use crate::error::{Error, FlinkClass, Result};

/// A type that an option can have.
pub trait OptionValue: Sized {
    /// Parses a text. The message is Flink's; the caller adds the key.
    fn parse(text: &str) -> Result<Self>;

    /// Returns what values look like: `a number`, `a duration such as 10 s`.
    fn describe() -> String;

    /// Returns the values, when they are few enough to be listed.
    fn known_values() -> Vec<&'static str> {
        Vec::new()
    }
}

/// An option value out of a fixed set. Texts are compared without case and with `-` as `_`.
pub trait EnumValue: Sized + Copy + 'static {
    /// The Java class that Flink's message names.
    const CLASS: &'static str;
    /// Each value with its text.
    const VALUES: &'static [(&'static str, Self)];
}

impl<E: EnumValue> OptionValue for E {
    fn parse(text: &str) -> Result<Self> {
        let plain = |text: &str| text.trim().to_ascii_lowercase().replace('-', "_");
        let wanted = plain(text);
        E::VALUES.iter().find(|(name, _)| plain(name) == wanted).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = E::VALUES.iter().map(|(name, _)| *name).collect();
            Error::validation(format!(
                "Could not parse value for enum {}. Expected one of: [[{}]]",
                E::CLASS,
                names.join(", ")
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
        })
    }

    fn describe() -> String {
        let names: Vec<&str> = E::VALUES.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    }

    fn known_values() -> Vec<&'static str> {
        E::VALUES.iter().map(|(name, _)| *name).collect()
    }
}

impl OptionValue for String {
    fn parse(text: &str) -> Result<Self> {
        Ok(text.to_owned())
    }

    fn describe() -> String {
        "a text".to_owned()
    }
}

impl OptionValue for bool {
    fn parse(text: &str) -> Result<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Error::validation(format!(
                "Unrecognized option for boolean: {text}. Expected either true or false(case insensitive)"
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)),
        }
    }

    fn describe() -> String {
        "true or false".to_owned()
    }

    fn known_values() -> Vec<&'static str> {
        vec!["true", "false"]
    }
}

/// Implements the option types that are plain numbers.
macro_rules! numbers {
    ($($number:ty => $describe:literal;)*) => {$(
        impl OptionValue for $number {
            fn parse(text: &str) -> Result<Self> {
                text.trim().parse().map_err(|error| {
                    Error::validation(format!("For input string: \"{text}\"")).class(FlinkClass::NUMBER_FORMAT).caused_by(error)
                })
            }

            fn describe() -> String {
                $describe.to_owned()
            }
        }
    )*};
}

numbers! {
    i32 => "a whole number";
    i64 => "a whole number";
    u32 => "a whole number that is not negative";
    u64 => "a whole number that is not negative";
    f64 => "a number";
}

impl OptionValue for Duration {
    fn parse(text: &str) -> Result<Self> {
        parse_duration(text)
    }

    fn describe() -> String {
        "a duration such as '500 ms', '10 s' or '1 h'".to_owned()
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemorySize(pub u64);

impl OptionValue for MemorySize {
    fn parse(text: &str) -> Result<Self> {
        const UNITS: &[(&str, u64)] = &[
            ("b", 1),
            ("bytes", 1),
            ("k", 1 << 10),
            ("kb", 1 << 10),
            ("kibibytes", 1 << 10),
            ("m", 1 << 20),
            ("mb", 1 << 20),
            ("mebibytes", 1 << 20),
            ("g", 1 << 30),
            ("gb", 1 << 30),
            ("gibibytes", 1 << 30),
            ("t", 1 << 40),
            ("tb", 1 << 40),
            ("tebibytes", 1 << 40),
        ];
        let (number, unit) = split_number(text)?;
        let factor = if unit.is_empty() {
            Some(1)
        } else {
            UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
        };
        let factor = factor.ok_or_else(|| {
            Error::validation(format!(
                "Memory size unit '{unit}' does not match any of the recognized units: (b | bytes) / (k | kb | kibibytes) / (m | mb | mebibytes) / (g | gb | gibibytes) / (t | tb | tebibytes)"
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
        })?;
        number.checked_mul(factor).map(MemorySize).ok_or_else(|| {
            Error::validation(format!(
                "The value '{text}' cannot be represented as 64bit number of bytes (numeric overflow)."
            ))
            .class(FlinkClass::ILLEGAL_ARGUMENT)
        })
    }

    fn describe() -> String {
        "a size such as '64 kb' or '1 gb'".to_owned()
    }
}

/// Semicolon-separated texts.
impl OptionValue for Vec<String> {
    fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let (inner, separator) = match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(inner) => (inner, ','),
            None => (text, ';'),
        };
        let parts = inner.split(separator).map(str::trim).filter(|part| !part.is_empty());
        Ok(parts.map(|part| part.trim_matches('\'').trim_matches('"').to_owned()).collect())
    }

    fn describe() -> String {
        "a list of texts separated by ';'".to_owned()
    }
}

/// Units of a duration: the names, the label that errors list, and the nanoseconds.
const DURATION_UNITS: &[(&[&str], &str, u128)] = &[
    (&["d", "day", "days"], "DAYS: (d | day | days)", 86_400_000_000_000),
    (&["h", "hour", "hours"], "HOURS: (h | hour | hours)", 3_600_000_000_000),
    (&["m", "min", "minute", "minutes"], "MINUTES: (m | min | minute | minutes)", 60_000_000_000),
    (
        &["s", "sec", "secs", "second", "seconds"],
        "SECONDS: (s | sec | secs | second | seconds)",
        1_000_000_000,
    ),
    (
        &["ms", "milli", "millis", "millisecond", "milliseconds"],
        "MILLISECONDS: (ms | milli | millis | millisecond | milliseconds)",
        1_000_000,
    ),
    (
        &["µs", "micro", "micros", "microsecond", "microseconds"],
        "MICROSECONDS: (µs | micro | micros | microsecond | microseconds)",
        1_000,
    ),
    (
        &["ns", "nano", "nanos", "nanosecond", "nanoseconds"],
        "NANOSECONDS: (ns | nano | nanos | nanosecond | nanoseconds)",
        1,
    ),
];

/// Parses a duration: a number with a unit (milliseconds if there is none), or ISO-8601 such as `PT10S`.
pub fn parse_duration(text: &str) -> Result<Duration> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Error::validation("argument is an empty- or whitespace-only string")
            .class(FlinkClass::ILLEGAL_ARGUMENT));
    }
    if !trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        return parse_iso_duration(trimmed).ok_or_else(|| {
            Error::validation(format!(
                "text does not start with a number, and is not a valid ISO-8601 duration format: {trimmed}"
            ))
            .class(FlinkClass::NUMBER_FORMAT)
        });
    }
    let (number, unit) = split_number(trimmed)?;
    let unit = if unit.is_empty() { "ms" } else { unit.as_str() };
    let nanos = DURATION_UNITS.iter().find(|(names, _, _)| names.contains(&unit)).map(|(_, _, nanos)| *nanos);
    let nanos = nanos.ok_or_else(|| {
        let known: Vec<&str> = DURATION_UNITS.iter().map(|(_, label, _)| *label).collect();
        Error::validation(format!(
            "Time interval unit label '{unit}' does not match any of the recognized units: {}",
            known.join(", ")
        ))
        .class(FlinkClass::ILLEGAL_ARGUMENT)
    })?;
    let total = u128::from(number) * nanos;
    let seconds = u64::try_from(total / 1_000_000_000);
    let seconds = seconds.map_err(|error| {
        Error::validation(format!("The value '{text}' is too large a duration")).caused_by(error)
    })?;
    Ok(Duration::new(seconds, (total % 1_000_000_000) as u32))
}

/// Parses `PnDTnHnMn.nS` without signs.
fn parse_iso_duration(text: &str) -> Option<Duration> {
    let text = text.to_ascii_uppercase();
    let rest = text.strip_prefix('P')?;
    let (date, time) = rest.split_once('T').unwrap_or((rest, ""));
    let mut seconds = 0.0;
    let mut number = String::new();
    for (part, units) in
        [(date, [('D', 86_400.0), (' ', 0.0), (' ', 0.0)]), (time, [('H', 3_600.0), ('M', 60.0), ('S', 1.0)])]
    {
        for character in part.chars() {
            if character.is_ascii_digit() || character == '.' {
                number.push(character);
            } else {
                let factor = units.iter().find(|(unit, _)| *unit == character)?.1;
                seconds += number.parse::<f64>().ok()? * factor;
                number.clear();
            }
        }
    }
    (number.is_empty() && rest.len() > 1).then(|| Duration::from_secs_f64(seconds))
}

/// Splits `10 min` into the number and the unit in small letters.
fn split_number(text: &str) -> Result<(u64, String)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits].parse().map_err(|error| {
        let message = if digits == 0 {
            "text does not start with a number".to_owned()
        } else {
            format!(
                "The value '{}' cannot be re represented as 64bit number (numeric overflow).",
                &text[..digits]
            )
        };
        Error::validation(message).class(FlinkClass::NUMBER_FORMAT).caused_by(error)
    })?;
    Ok((number, text[digits..].trim().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_units_plain_milliseconds_and_iso() {
        assert_eq!(parse_duration("3s").unwrap(), Duration::from_secs(3));
        assert_eq!(parse_duration("10 min").unwrap(), Duration::from_secs(600));
        assert_eq!(parse_duration("10000").unwrap(), Duration::from_secs(10));
        assert_eq!(parse_duration("PT1M30.5S").unwrap(), Duration::from_millis(90_500));
        assert!(
            parse_duration("3 apples")
                .unwrap_err()
                .message()
                .starts_with("Time interval unit label 'apples'")
        );
        assert!(parse_duration("x").is_err());
        assert!(parse_duration("PT").is_err());
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(MemorySize::parse("64 kb").unwrap(), MemorySize(65_536));
        assert_eq!(MemorySize::parse("128MB").unwrap(), MemorySize(134_217_728));
        assert!(MemorySize::parse("5 parsecs").is_err());
    }

    #[test]
    fn lists_take_semicolons_or_brackets() {
        assert_eq!(Vec::<String>::parse("a; b").unwrap(), ["a", "b"]);
        assert_eq!(Vec::<String>::parse("[a, b]").unwrap(), ["a", "b"]);
    }
}
