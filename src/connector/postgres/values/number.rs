//! Numbers: from the texts that PostgreSQL writes, and from the binary form of numeric, digits to the base of ten thousand.

use super::Fault;
use crate::format::{DecimalText, parse_decimal, parse_i64};

const NOT_A_NUMBER: Fault = Fault::Misfit("is not a number");
const INFINITE: Fault = Fault::Misfit("is infinite");
pub(super) const TOO_LARGE: Fault = Fault::Misfit("has too many digits");

/// Reads a whole number. One of type numeric may have a fraction, which must be zero.
#[inline]
pub(super) fn integer(text: &[u8]) -> Result<i64, Fault> {
    match parse_i64(text) {
        Some(value) => Ok(value),
        None => rare_integer(text.trim_ascii()),
    }
}

#[cold]
fn rare_integer(text: &[u8]) -> Result<i64, Fault> {
    if let Some(fault) = special(text) {
        return Err(fault);
    }
    let point = memchr::memchr(b'.', text).unwrap_or(text.len());
    let (whole, fraction) = text.split_at(point);
    let fraction = fraction.get(1..).unwrap_or_default();
    let digits = whole.strip_prefix(b"-").unwrap_or(whole);
    if digits.is_empty() || !digits.iter().chain(fraction).all(u8::is_ascii_digit) {
        return Err(Fault::Malformed("is no whole number"));
    }
    if fraction.iter().any(|digit| *digit != b'0') {
        return Err(Fault::Misfit("has a fraction"));
    }
    parse_i64(whole).ok_or(TOO_LARGE)
}

/// Makes a number fit into fewer bytes.
#[inline]
pub(super) fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, Fault> {
    T::try_from(value).map_err(|_| TOO_LARGE)
}

/// Reads a decimal as its unscaled value; digits beyond the scale are rounded, as Flink does it.
#[inline]
pub(super) fn decimal(text: &[u8], precision: u8, scale: u8) -> Result<i128, Fault> {
    match parse_decimal(text, precision, scale) {
        DecimalText::Value(value) => Ok(value),
        DecimalText::TooLarge => Err(TOO_LARGE),
        DecimalText::Malformed => Err(special(text).unwrap_or(Fault::Malformed("is no number"))),
    }
}

/// Reads what money looks like in the locale C: `-$1,234.56`.
pub(super) fn money(text: &[u8], precision: u8, scale: u8) -> Result<i128, Fault> {
    let mut digits = [0; 32];
    let mut length = 0;
    for byte in text.iter().filter(|byte| !matches!(byte, b'$' | b',')) {
        let Some(place) = digits.get_mut(length) else { return Err(TOO_LARGE) };
        *place = *byte;
        length += 1;
    }
    decimal(&digits[..length], precision, scale)
}

/// Returns what is wrong with the values of numeric and the floating-point types that are no numbers.
fn special(text: &[u8]) -> Option<Fault> {
    match text {
        b"NaN" => Some(NOT_A_NUMBER),
        b"Infinity" | b"-Infinity" => Some(INFINITE),
        _ => None,
    }
}

/// The parts of a numeric in binary form.
#[derive(Debug, Clone, Copy)]
struct Numeric<'a> {
    /// The power of ten thousand that the first digit stands for.
    weight: i32,
    is_negative: bool,
    /// How many digits stand behind the point in texts.
    shown_scale: usize,
    /// Digits, two bytes each.
    digits: &'a [[u8; 2]],
}

const MALFORMED: Fault = Fault::Malformed("is no numeric in binary form");

impl<'a> Numeric<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Result<Numeric<'a>, Fault> {
        let Some((head, digits)) = bytes.split_first_chunk::<8>() else { return Err(MALFORMED) };
        let count = u16::from_be_bytes([head[0], head[1]]);
        let weight = i16::from_be_bytes([head[2], head[3]]);
        let is_negative = match u16::from_be_bytes([head[4], head[5]]) {
            0x0000 => false,
            0x4000 => true,
            0xc000 => return Err(NOT_A_NUMBER),
            0xd000 | 0xf000 => return Err(INFINITE),
            _ => return Err(MALFORMED),
        };
        let shown_scale = usize::from(u16::from_be_bytes([head[6], head[7]]));
        let (digits, rest) = digits.as_chunks();
        if !rest.is_empty() || digits.len() != usize::from(count) {
            return Err(MALFORMED);
        }
        Ok(Numeric { weight: i32::from(weight), is_negative, shown_scale, digits })
    }
}

/// The powers of ten that an unscaled value may have.
const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// Reads a numeric in binary form as the unscaled value of a decimal, rounded as `decimal` does it.
#[inline]
pub(super) fn numeric(bytes: &[u8], precision: u8, scale: u8) -> Result<i128, Fault> {
    let numeric = Numeric::new(bytes)?;
    let mut value = 0_i128;
    // The power of ten that the last place of a digit stands for, in units of the last place that is kept.
    let mut exponent = 4 * numeric.weight + i32::from(scale);
    for digit in numeric.digits {
        let digit = i128::from(u16::from_be_bytes(*digit));
        if exponent >= 0 {
            // Four more places make 10^38 of it.
            if value >= POWERS_OF_TEN[34] {
                return Err(TOO_LARGE);
            }
            value = value * 10_000 + digit;
        } else if exponent > -4 {
            let cut = POWERS_OF_TEN[exponent.unsigned_abs() as usize];
            value = value.checked_mul(10_000 / cut).ok_or(TOO_LARGE)?;
            let last = digit / cut + i128::from(digit % cut * 2 >= cut);
            value = value.checked_add(last).ok_or(TOO_LARGE)?;
            exponent = -4;
            break;
        } else {
            value += i128::from(exponent == -4 && digit >= 5_000);
            exponent = -4;
            break;
        }
        exponent -= 4;
    }
    // `exponent` is that of the digit behind the last one.
    if value != 0 {
        let missing = (exponent + 4).max(0) as usize;
        let Some(power) = POWERS_OF_TEN.get(missing) else { return Err(TOO_LARGE) };
        value = value.checked_mul(*power).ok_or(TOO_LARGE)?;
    }
    if value >= POWERS_OF_TEN[usize::from(precision.min(38))] {
        return Err(TOO_LARGE);
    }
    Ok(if numeric.is_negative { -value } else { value })
}

/// Writes a numeric in binary form as its text, for messages; None if it is malformed.
pub(super) fn numeric_text(bytes: &[u8]) -> Option<String> {
    let numeric = match Numeric::new(bytes) {
        Ok(numeric) => numeric,
        Err(NOT_A_NUMBER) => return Some("NaN".to_owned()),
        Err(INFINITE) => return Some("Infinity".to_owned()),
        Err(_) => return None,
    };
    let group = |place: i32| {
        let at = usize::try_from(numeric.weight - place).ok();
        at.and_then(|at| numeric.digits.get(at)).map_or(0, |digit| u16::from_be_bytes(*digit))
    };
    let whole: String =
        (0..=numeric.weight.max(0)).rev().map(|place| format!("{:04}", group(place))).collect();
    let groups = numeric.shown_scale.div_ceil(4) as i32;
    let mut fraction: String = (1..=groups).map(|place| format!("{:04}", group(-place))).collect();
    fraction.truncate(numeric.shown_scale);
    let whole = whole.trim_start_matches('0');
    let sign = if numeric.is_negative { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{}{point}{fraction}", if whole.is_empty() { "0" } else { whole }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a decimal text as numeric_send does.
    fn binary(text: &str) -> Vec<u8> {
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (0x4000_u16, rest),
            None => (0, text),
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mut whole = whole.trim_start_matches('0').to_owned();
        whole.insert_str(0, &"0".repeat((4 - whole.len() % 4) % 4));
        let padded = format!("{fraction}{}", "0".repeat((4 - fraction.len() % 4) % 4));
        let mut weight = (whole.len() / 4) as i16 - 1;
        let digits = format!("{whole}{padded}");
        let mut groups: Vec<u16> = digits
            .as_bytes()
            .chunks(4)
            .map(|group| std::str::from_utf8(group).unwrap().parse().unwrap())
            .collect();
        while groups.first() == Some(&0) {
            groups.remove(0);
            weight -= 1;
        }
        while groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() {
            weight = 0;
        }
        let mut bytes = Vec::new();
        for part in [groups.len() as u16, weight.cast_unsigned(), sign, fraction.len() as u16] {
            bytes.extend_from_slice(&part.to_be_bytes());
        }
        groups.iter().for_each(|group| bytes.extend_from_slice(&group.to_be_bytes()));
        bytes
    }

    #[test]
    fn what_is_no_number_or_too_large_is_a_misfit() {
        for text in ["NaN", "Infinity", "-Infinity", "1000", "99999999999999999999999999999999999999999"] {
            assert!(matches!(decimal(text.as_bytes(), 5, 2), Err(Fault::Misfit(_))), "{text}");
        }
        assert_eq!(decimal(b"abc", 5, 2), Err(Fault::Malformed("is no number")));
        for sign in [0xc0, 0xd0, 0xf0] {
            assert!(matches!(numeric(&[0, 0, 0, 0, sign, 0, 0, 0], 5, 2), Err(Fault::Misfit(_))));
        }
        assert_eq!(numeric(b"12", 5, 2), Err(MALFORMED));
        assert_eq!(numeric(&[0, 2, 0, 0, 0, 0, 0, 0, 0, 1], 5, 2), Err(MALFORMED));
    }

    #[test]
    fn whole_numbers_may_be_written_with_a_fraction_of_zeros() {
        assert_eq!(integer(b"-12.00"), Ok(-12));
        assert_eq!(integer(b" 7 "), Ok(7));
        assert_eq!(integer(b"1.5"), Err(Fault::Misfit("has a fraction")));
        assert_eq!(integer(b"18446744073709551615"), Err(TOO_LARGE));
        assert_eq!(integer(b"NaN"), Err(NOT_A_NUMBER));
        for text in ["", "-", "n3000", "1.2.3", "1e3"] {
            assert_eq!(integer(text.as_bytes()), Err(Fault::Malformed("is no whole number")), "{text}");
        }
        assert_eq!(narrow::<i8>(128), Err(TOO_LARGE));
    }

    #[test]
    fn money_has_signs_and_commas() {
        assert_eq!(money(b"-$92,233,720,368,547,758.08", 19, 2), Ok(-9_223_372_036_854_775_808));
        assert_eq!(money(b"$0.01", 5, 2), Ok(1));
        assert!(money(&[b'1'; 40], 38, 2).is_err());
    }

    #[test]
    fn binary_numerics_reach_the_ends_of_the_type() {
        let nines = "9".repeat(38);
        assert_eq!(numeric(&binary(&nines), 38, 0), Ok(POWERS_OF_TEN[38] - 1));
        assert_eq!(numeric(&binary(&format!("-{nines}")), 38, 0), Ok(1 - POWERS_OF_TEN[38]));
        assert_eq!(numeric(&binary(&format!("1{}", "0".repeat(38))), 38, 0), Err(TOO_LARGE));
        assert_eq!(numeric(&binary(&format!("1{}", "0".repeat(70))), 38, 18), Err(TOO_LARGE));
        assert_eq!(numeric(&binary("0.00000000000000000001"), 38, 18), Ok(0));
        assert_eq!(numeric(&binary("0"), 5, 2), Ok(0));
        assert_eq!(numeric(&binary("9.995"), 3, 2), Err(TOO_LARGE));
    }

    #[test]
    fn a_binary_numeric_beyond_the_widest_integer_is_too_large() {
        // More thousandths than i128 counts.
        let text = "170141183460469231731687303715884105.9999";
        assert_eq!(numeric(&binary(text), 38, 3), Err(TOO_LARGE));
        assert_eq!(numeric(&binary(&format!("-{text}")), 38, 3), Err(TOO_LARGE));
        assert_eq!(decimal(text.as_bytes(), 38, 3), Err(TOO_LARGE));
    }

    proptest! {
        #[test]
        fn the_binary_form_gives_what_the_text_gives(
            text in "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,40})?", precision in 1_u8..=38, scale in 0_u8..=38,
        ) {
            let scale = scale.min(precision);
            let bytes = binary(&text);
            prop_assert_eq!(numeric(&bytes, precision, scale), decimal(text.as_bytes(), precision, scale));
            let shown = numeric_text(&bytes).unwrap();
            prop_assert_eq!(shown.trim_start_matches('-'), text.trim_start_matches('-'));
        }
    }
}
