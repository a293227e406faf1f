//! Decimal numbers in canonical spelling.

use core::fmt::{self, Write};

/// Sign convention of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// Minus only.
    Plain,
    /// Plus or minus on everything but zero.
    Explicit,
}

/// Fault of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberFault {
    /// The spelling is not canonical.
    #[error("not a number in canonical form")]
    Spelling,
    /// The value exceeds the type.
    #[error("number out of range")]
    Range,
}

/// Parses `text`, which must be exactly what [`write`] returns for its value.
///
/// Bytes rather than `str`: splitting a `str` leaves a panic path in the code.
pub(super) fn parse(text: &[u8], sign: Sign) -> Result<i64, NumberFault> {
    let (negative, digits) = match (text, sign) {
        ([b'0'], _) => return Ok(0),
        ([b'-', digits @ ..], _) => (true, digits),
        ([b'+', digits @ ..], Sign::Explicit) | (digits, Sign::Plain) => (false, digits),
        _ => return Err(NumberFault::Spelling),
    };
    let canonical = matches!(digits, [b'1'..=b'9', ..]) && digits.iter().all(u8::is_ascii_digit);
    if !canonical {
        return Err(NumberFault::Spelling);
    }
    // Negative throughout, because the least number has no positive counterpart.
    let value = digits.iter().try_fold(0i64, |value, digit| {
        let digit = i64::from(digit.wrapping_sub(b'0'));
        value.checked_mul(10)?.checked_sub(digit)
    });
    let value = if negative {
        value
    } else {
        value.and_then(i64::checked_neg)
    };
    value.ok_or(NumberFault::Range)
}

/// Writes `value` in canonical spelling.
pub(super) fn write(value: i64, sign: Sign, out: &mut impl Write) -> fmt::Result {
    if value < 0 {
        out.write_char('-')?;
    } else if value > 0 && sign == Sign::Explicit {
        out.write_char('+')?;
    }
    // The digits are produced in reverse; nineteen suffice for any i64.
    let mut digits = [b'0'; 20];
    let mut left = value.unsigned_abs();
    let mut count = 0usize;
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.wrapping_add(u8::try_from(left % 10).unwrap_or(0));
        left /= 10;
        count = count.wrapping_add(1);
        if left == 0 {
            break;
        }
    }
    let unused = digits.len().saturating_sub(count);
    for digit in digits.iter().skip(unused) {
        out.write_char(char::from(*digit))?;
    }
    Ok(())
}

/// Writes `values` with dots between them.
pub(super) fn write_dotted(
    values: impl IntoIterator<Item = i64>,
    sign: Sign,
    out: &mut impl Write,
) -> fmt::Result {
    for (at, value) in values.into_iter().enumerate() {
        if at != 0 {
            out.write_char('.')?;
        }
        write(value, sign, out)?;
    }
    Ok(())
}

/// Iterates over the numbers of a dotted text that has been checked.
pub(super) fn dotted(text: &[u8], sign: Sign) -> impl Iterator<Item = i64> + Clone {
    parts(text, b'.').map(move |number| parse(number, sign).unwrap_or(0))
}

/// Splits at the separators; empty text is one empty part.
pub(super) fn parts(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> + Clone {
    text.split(move |&byte| byte == separator)
}
