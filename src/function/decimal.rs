//! Arithmetic on unscaled decimals. A result that needs more digits than its type has is None, which SQL shows as NULL.
//!
//! Rounding is HALF_UP: a tie goes away from zero.

use arrow::datatypes::i256;

/// The powers of ten that an i128 holds.
pub(super) const POWERS_OF_TEN: [i128; 39] = {
    let mut powers = [1_i128; 39];
    let mut exponent = 1;
    while exponent < 39 {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Returns whether a value has at most `precision` digits.
pub(super) fn fits(value: i128, precision: u8) -> bool {
    value.unsigned_abs() < POWERS_OF_TEN[usize::from(precision.min(38))].unsigned_abs()
}

/// Brings a value from one scale to another.
pub(super) fn rescale(value: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return value.checked_mul(*POWERS_OF_TEN.get(usize::from(to - from))?);
    }
    let Some(unit) = POWERS_OF_TEN.get(usize::from(from - to)) else { return Some(0) };
    Some(divide_half_up(value, *unit))
}

/// Divides and rounds a tie away from zero. The divisor is not zero.
pub(super) fn divide_half_up(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value / divisor, value % divisor);
    if rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs() && rest != 0 {
        quotient + if (value < 0) == (divisor < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// Returns ten to the power, which may pass what an i128 holds.
fn wide_power(exponent: u8) -> i256 {
    let mut power = i256::from_i128(POWERS_OF_TEN[usize::from(exponent.min(38))]);
    for _ in 38..exponent {
        power = power.wrapping_mul(i256::from_i128(10));
    }
    power
}

/// Divides wide numbers and rounds a tie away from zero. The divisor is not zero.
fn wide_divide_half_up(value: i256, divisor: i256) -> i256 {
    let (quotient, rest) = (value.wrapping_div(divisor), value.wrapping_rem(divisor));
    let (rest_size, divisor_size) = (rest.wrapping_abs(), divisor.wrapping_abs());
    if rest != i256::ZERO && rest_size >= divisor_size.wrapping_sub(rest_size) {
        let is_negative = (value < i256::ZERO) != (divisor < i256::ZERO);
        quotient.wrapping_add(i256::from_i128(if is_negative { -1 } else { 1 }))
    } else {
        quotient
    }
}

/// Brings a wide value to a scale and into an i128.
fn wide_rescale(value: i256, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return value.checked_mul(wide_power(to - from))?.to_i128();
    }
    wide_divide_half_up(value, wide_power(from - to)).to_i128()
}

/// A decimal operation with the scales of its operands and its result.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecimalOperation {
    pub(super) left_scale: u8,
    pub(super) right_scale: u8,
    pub(super) precision: u8,
    pub(super) scale: u8,
}

impl DecimalOperation {
    fn checked(&self, value: Option<i128>) -> Option<i128> {
        value.filter(|value| fits(*value, self.precision))
    }

    fn common_scale(&self) -> u8 {
        self.left_scale.max(self.right_scale)
    }

    /// Adds, or subtracts if the right side is negated before.
    pub(super) fn add(&self, left: i128, right: i128) -> Option<i128> {
        let common = self.common_scale();
        let exact = rescale(left, self.left_scale, common)
            .zip(rescale(right, self.right_scale, common))
            .and_then(|(left, right)| left.checked_add(right));
        self.checked(match exact {
            Some(sum) => rescale(sum, common, self.scale),
            None => {
                let left = i256::from_i128(left).wrapping_mul(wide_power(common - self.left_scale));
                let right = i256::from_i128(right).wrapping_mul(wide_power(common - self.right_scale));
                wide_rescale(left.wrapping_add(right), common, self.scale)
            }
        })
    }

    /// Multiplies.
    pub(super) fn multiply(&self, left: i128, right: i128) -> Option<i128> {
        let scale = self.left_scale + self.right_scale;
        self.checked(match left.checked_mul(right) {
            Some(product) => rescale(product, scale, self.scale),
            None => {
                wide_rescale(i256::from_i128(left).wrapping_mul(i256::from_i128(right)), scale, self.scale)
            }
        })
    }

    /// Divides by a number that is not zero.
    pub(super) fn divide(&self, left: i128, right: i128) -> Option<i128> {
        let shift = i16::from(self.scale) + i16::from(self.right_scale) - i16::from(self.left_scale);
        let (up, down) = (shift.max(0) as u8, (-shift).max(0) as u8);
        let narrow = POWERS_OF_TEN
            .get(usize::from(up))
            .and_then(|power| left.checked_mul(*power))
            .zip(POWERS_OF_TEN.get(usize::from(down)).and_then(|power| right.checked_mul(*power)));
        self.checked(match narrow {
            Some((left, right)) => Some(divide_half_up(left, right)),
            None => {
                let left = i256::from_i128(left).wrapping_mul(wide_power(up));
                let right = i256::from_i128(right).wrapping_mul(wide_power(down));
                wide_divide_half_up(left, right).to_i128()
            }
        })
    }

    /// Returns the remainder of a division by a number that is not zero; it has the dividend's sign.
    pub(super) fn remainder(&self, left: i128, right: i128) -> Option<i128> {
        let common = self.common_scale();
        let narrow = rescale(left, self.left_scale, common).zip(rescale(right, self.right_scale, common));
        self.checked(match narrow {
            Some((left, right)) => rescale(left.wrapping_rem(right), common, self.scale),
            None => {
                let left = i256::from_i128(left).wrapping_mul(wide_power(common - self.left_scale));
                let right = i256::from_i128(right).wrapping_mul(wide_power(common - self.right_scale));
                wide_rescale(left.wrapping_rem(right), common, self.scale)
            }
        })
    }
}

/// Returns the nearest double of a decimal.
pub(super) fn to_double(value: i128, scale: u8) -> f64 {
    // Both numbers are exact below these bounds, so the division rounds once.
    if value.unsigned_abs() <= 1 << 53 && scale <= 22 {
        return value as f64 / POWERS_OF_TEN[usize::from(scale)] as f64;
    }
    format!("{value}e-{scale}").parse().unwrap_or(f64::NAN)
}

/// Parses digits with an optional fraction and exponent, rounded HALF_UP to the scale. None if the text is no number;
/// `Some(None)` if it needs more digits than the type has.
pub(super) fn parse(text: &str, precision: u8, scale: u8) -> Option<Option<i128>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (is_negative, mantissa) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0
        || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
    let leading_zeros = whole.bytes().chain(fraction.bytes()).take_while(|digit| *digit == b'0').count();
    // The position of the decimal point within the digits after the leading zeros.
    let point = whole.len() as i64 - leading_zeros as i64 + i64::from(exponent);
    let kept = point + i64::from(scale);
    if kept > 38 + i64::from(scale) {
        let is_zero = whole.len() + fraction.len() == leading_zeros;
        return Some(is_zero.then_some(0));
    }
    let mut value: i128 = 0;
    let mut count: i64 = 0;
    let mut rounds_up = false;
    for digit in digits {
        if count >= kept {
            rounds_up = count == kept && digit >= b'5';
            break;
        }
        let Some(next) = value.checked_mul(10).and_then(|value| value.checked_add(i128::from(digit - b'0')))
        else {
            return Some(None);
        };
        value = next;
        count += 1;
    }
    if value != 0 && count < kept {
        let Some(scaled) =
            POWERS_OF_TEN.get((kept - count) as usize).and_then(|power| value.checked_mul(*power))
        else {
            return Some(None);
        };
        value = scaled;
    }
    value += i128::from(rounds_up);
    Some(fits(value, precision).then_some(if is_negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_away_from_zero() {
        assert_eq!(rescale(123_455, 3, 2), Some(12_346));
        assert_eq!(rescale(-123_455, 3, 2), Some(-12_346));
        assert_eq!(rescale(123_454, 3, 2), Some(12_345));
        assert_eq!(divide_half_up(-7, 2), -4);
    }

    #[test]
    fn too_many_digits_are_none_and_wide_products_are_exact() {
        let operation = DecimalOperation { left_scale: 10, right_scale: 10, precision: 38, scale: 6 };
        let one = POWERS_OF_TEN[10];
        assert_eq!(operation.multiply(one, one), Some(1_000_000));
        assert_eq!(operation.multiply(i128::MAX / 2, i128::MAX / 2), None);
        assert_eq!(operation.divide(one, 3 * one), Some(333_333));
        assert_eq!(operation.divide(2 * one, 3 * one), Some(666_667));
        assert_eq!(operation.remainder(-7 * one, 3 * one), Some(-1_000_000));
    }

    #[test]
    fn texts_are_parsed_with_exponent_and_rounded() {
        assert_eq!(parse("12.345", 5, 2), Some(Some(1235)));
        assert_eq!(parse("-1e3", 38, 10), Some(Some(-10_000_000_000_000)));
        assert_eq!(parse("1e3", 5, 2), Some(None));
        assert_eq!(parse("0.005", 5, 2), Some(Some(1)));
        assert_eq!(parse("0.0049", 5, 2), Some(Some(0)));
        assert_eq!(parse(".5", 5, 0), Some(Some(1)));
        assert_eq!(parse("", 5, 2), None);
        assert_eq!(parse("1x", 5, 2), None);
        assert_eq!(parse("1e-400", 5, 2), Some(Some(0)));
    }

    #[test]
    fn doubles_are_the_nearest() {
        assert_eq!(to_double(11, 1), 1.1);
        assert_eq!(to_double(1_100_000_000_000_000_000, 18), 1.1);
        assert_eq!(to_double(99_999_999_999_999_999_999_999_999_999_999_999_999, 0), 1e38);
    }
}
