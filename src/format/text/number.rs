//! Numbers from bytes, by hand: no UTF-8 check, no allocation.

use std::str;

/// The powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// What a text is as a decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalText {
    /// The unscaled value.
    Value(i128),
    /// A number with more digits before the point than the type has: NULL in Flink.
    TooLarge,
    /// No number.
    Malformed,
}

/// Parses a whole number with an optional sign. Digits only: no blanks, no point.
#[inline]
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = split_sign(text);
    if digits.is_empty() {
        return None;
    }
    if digits.len() <= 18 {
        let mut value = 0_i64;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            value = value * 10 + i64::from(digit);
        }
        return Some(if is_negative { -value } else { value });
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Counting downwards reaches the least value, which has no positive counterpart.
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if is_negative { Some(value) } else { value.checked_neg() }
}

/// Parses a floating-point number as Java does: digits with point and exponent, `NaN`, `Infinity`.
#[inline]
pub(crate) fn parse_f64(text: &[u8]) -> Option<f64> {
    let (is_negative, digits) = split_sign(text);
    let (mut mantissa, mut scale, mut digit_count, mut has_point) = (0_u64, 0_usize, 0_usize, false);
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            digit_count += 1;
            scale += usize::from(has_point);
        } else if *byte == b'.' && !has_point {
            has_point = true;
        } else {
            return parse_rare_f64(text);
        }
    }
    // Both mantissa and power are exact in a double, so that one division rounds as IEEE asks.
    if digit_count == 0 || digit_count > 15 || scale >= EXACT_POWERS.len() {
        return parse_rare_f64(text);
    }
    let value = mantissa as f64 / EXACT_POWERS[scale];
    Some(if is_negative { -value } else { value })
}

fn parse_rare_f64(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    // Java takes a type letter behind the number.
    let number = text
        .strip_suffix(['d', 'D', 'f', 'F'])
        .filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit() || c == '.'));
    number.unwrap_or(text).parse().ok()
}

/// Parses a number as DECIMAL(precision, scale): digits beyond the scale are rounded half away from zero.
pub(crate) fn parse_decimal(text: &[u8], precision: u8, scale: u8) -> DecimalText {
    if let Some(value) = parse_short_decimal(text, precision, scale) {
        return DecimalText::Value(i128::from(value));
    }
    let (is_negative, rest) = split_sign(text);
    let (digits, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => match parse_i64(&rest[at + 1..]) {
            Some(exponent) if exponent.abs() <= i64::from(i32::MAX) => (&rest[..at], exponent),
            _ => return DecimalText::Malformed,
        },
        None => (rest, 0),
    };
    let mut digit_count = 0_i64;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => digit_count += 1,
            b'.' if point.is_none() => point = Some(at as i64),
            _ => return DecimalText::Malformed,
        }
    }
    if digit_count == 0 {
        return DecimalText::Malformed;
    }
    // How many of the digits are kept: those up to the last one of the scale.
    let kept = point.unwrap_or(digit_count) + exponent + i64::from(scale);
    let mut value = 0_i128;
    let mut is_rounded_up = false;
    for (number, byte) in digits.iter().filter(|byte| **byte != b'.').enumerate() {
        let digit = i128::from(byte - b'0');
        if (number as i64) < kept {
            match value.checked_mul(10).and_then(|value| value.checked_add(digit)) {
                Some(next) => value = next,
                None => return DecimalText::TooLarge,
            }
        } else {
            is_rounded_up = number as i64 == kept && digit >= 5;
            break;
        }
    }
    if value != 0 {
        for _ in digit_count..kept {
            match value.checked_mul(10) {
                Some(next) => value = next,
                None => return DecimalText::TooLarge,
            }
        }
    }
    value += i128::from(is_rounded_up);
    if value >= 10_i128.pow(u32::from(precision.min(38))) {
        return DecimalText::TooLarge;
    }
    DecimalText::Value(if is_negative { -value } else { value })
}

/// The powers of ten below 10^19.
pub(crate) const POWERS_OF_TEN: [i64; 19] = {
    let mut powers = [1; 19];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Parses what most decimals are: a number of few digits without exponent that need not be rounded. None says nothing.
#[inline]
fn parse_short_decimal(text: &[u8], precision: u8, scale: u8) -> Option<i64> {
    let (is_negative, digits) = split_sign(text);
    if digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        match byte.wrapping_sub(b'0') {
            digit @ 0..=9 => value = value * 10 + i64::from(digit),
            _ if *byte == b'.' && point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let fraction = point.map_or(0, |at| digits.len() - at - 1);
    let whole = digits.len() - fraction - usize::from(point.is_some());
    let missing = usize::from(scale).checked_sub(fraction)?;
    if whole + fraction == 0 || whole + usize::from(scale) > 18 {
        return None;
    }
    let value = unscaled(value, missing, precision)?;
    Some(if is_negative { -value } else { value })
}

/// Returns the unscaled value of a decimal whose digits lack so many zeros of its scale; None if these are more digits than its type has.
/// All of them together are 18 at most.
#[inline]
pub(crate) fn unscaled(digits: i64, missing: usize, precision: u8) -> Option<i64> {
    let value = digits * POWERS_OF_TEN.get(missing)?;
    let fits = POWERS_OF_TEN.get(usize::from(precision)).is_none_or(|most| value < *most);
    fits.then_some(value)
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_reach_both_ends_and_no_further() {
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"+0012"), Some(12));
        for text in ["", "-", "1 ", "1.0", "0x1", "１"] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn decimals_round_half_away_from_zero_and_overflow_to_null() {
        assert_eq!(parse_decimal(b"1.005", 10, 2), DecimalText::Value(101));
        assert_eq!(parse_decimal(b"-1.005", 10, 2), DecimalText::Value(-101));
        assert_eq!(parse_decimal(b"12e3", 10, 2), DecimalText::Value(1_200_000));
        assert_eq!(parse_decimal(b"2.7E-8", 18, 9), DecimalText::Value(27));
        assert_eq!(parse_decimal(b"9e-9", 18, 2), DecimalText::Value(0));
        assert_eq!(parse_decimal(b".5", 3, 0), DecimalText::Value(1));
        assert_eq!(parse_decimal(b"99.995", 4, 2), DecimalText::TooLarge);
        assert_eq!(parse_decimal(b"1e2000000000", 38, 0), DecimalText::TooLarge);
        assert_eq!(parse_decimal(b"0e2000000000", 38, 0), DecimalText::Value(0));
        for text in ["", ".", "1.2.3", "e5", "1e", "abc"] {
            assert_eq!(parse_decimal(text.as_bytes(), 10, 2), DecimalText::Malformed, "{text}");
        }
    }

    #[test]
    fn floats_take_what_java_takes() {
        assert_eq!(parse_f64(b"1.5f"), Some(1.5));
        assert_eq!(parse_f64(b"-Infinity"), Some(f64::NEG_INFINITY));
        assert!(parse_f64(b"NaN").is_some_and(f64::is_nan));
        assert_eq!(parse_f64(b".5"), Some(0.5));
        assert_eq!(parse_f64(b"-0"), Some(0.0));
        assert!(parse_f64(b"-0").is_some_and(f64::is_sign_negative));
        assert_eq!(parse_f64(b"abc"), None);
        assert_eq!(parse_f64(b""), None);
    }

    proptest! {
        #[test]
        fn floats_equal_the_standard_library(value in any::<f64>(), digits in "-?[0-9]{1,18}(\\.[0-9]{0,12})?") {
            let text = format!("{value}");
            prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), text.parse::<f64>().ok().map(f64::to_bits));
            prop_assert_eq!(parse_f64(digits.as_bytes()), digits.parse::<f64>().ok());
        }
    }
}
