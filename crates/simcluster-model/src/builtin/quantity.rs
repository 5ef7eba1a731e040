//! `resource.Quantity`: amounts such as `500m`, `1.5Gi`, `2e3`, and their canonical form.

use std::fmt::Write as _;

const FORMAT_WRONG: &str = "quantities must match the regular expression \
     '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Billionths in a whole: smaller parts are not kept.
const NANOS: i128 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// An amount in billionths, with the notation it was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Reads an amount; `Err` is the server's text.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let (negative, unsigned) = match text.as_bytes().first() {
            None => return Err(FORMAT_WRONG),
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            Some(_) => (false, text),
        };
        let end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if !is_suffix(suffix) || fraction.contains('.') {
            return Err(FORMAT_WRONG);
        }
        let (base, exponent, format) = interpret(suffix).ok_or(SUFFIX)?;
        let digits = format!("{whole}{fraction}");
        let mantissa: i128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| NUMERIC)? };
        let scale = u32::try_from(fraction.len()).map_err(|_| NUMERIC)?;
        let nanos = if base == 2 {
            scaled(mantissa, 9, scale, 1 << exponent.unsigned_abs())
        } else {
            let places = i32::try_from(scale).map_err(|_| NUMERIC)?;
            let shift = exponent.saturating_add(9).saturating_sub(places);
            if shift >= 0 {
                scaled(mantissa, shift.unsigned_abs(), 0, 1)
            } else {
                scaled(mantissa, 0, shift.unsigned_abs(), 1)
            }
        };
        Ok(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    /// The amount in billionths.
    pub(crate) fn nanos(self) -> i128 {
        self.nanos
    }

    /// A whole number.
    pub(crate) fn whole(number: i64) -> Self {
        Self { nanos: i128::from(number) * NANOS, format: Format::Decimal }
    }

    /// The sum, in the notation of the first amount (or of the other, if the first is nothing).
    pub(crate) fn plus(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }

    /// The difference, in the notation of the first amount.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos), format: self.format }
    }

    /// The amount without anything finer than a thousandth, rounded away from zero.
    pub(crate) fn rounded_up_to_milli(self) -> Self {
        let milli = NANOS / 1000;
        let rest = self.nanos % milli;
        let up = if rest == 0 { 0 } else { rest.signum() * milli };
        Self { nanos: (self.nanos - rest).saturating_add(up), format: self.format }
    }

    /// The canonical form, as the server prints it.
    pub(crate) fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let whole = self.nanos % NANOS == 0;
        let units = self.nanos / NANOS;
        if self.format == Format::Binary && whole && units.abs() >= 1024 {
            let (mut value, mut step) = (units, 0);
            while value % 1024 == 0 && step < 6 {
                value /= 1024;
                step += 1;
            }
            let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(step).unwrap_or(&"");
            return format!("{value}{suffix}");
        }
        let (mut value, mut exponent) = (self.nanos, -9);
        while value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        let mut out = value.to_string();
        if self.format == Format::Exponent {
            if exponent != 0 {
                let _ = write!(out, "e{exponent}");
            }
            return out;
        }
        out.push_str(match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            _ => "",
        });
        out
    }
}

/// `mantissa * 10^up * factor / 10^down`, rounded away from zero, capped instead of overflowing.
fn scaled(mantissa: i128, up: u32, down: u32, factor: i128) -> i128 {
    let power = |exponent: u32| 10_i128.checked_pow(exponent).unwrap_or(i128::MAX);
    let product = mantissa.saturating_mul(factor);
    if up >= down {
        return product.saturating_mul(power(up - down));
    }
    let divisor = power(down - up);
    let rest = i128::from(product % divisor != 0);
    product / divisor + rest
}

fn is_suffix(suffix: &str) -> bool {
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn interpret(suffix: &str) -> Option<(u8, i32, Format)> {
    let decimal = |exponent| Some((10, exponent, Format::Decimal));
    let binary = |exponent| Some((2, exponent, Format::Binary));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            Some((10, exponent.parse().ok()?, Format::Exponent))
        }
    }
}

/// The form in which the server prints an amount that a client wrote: as written if no smaller or
/// bigger suffix would do, however odd the digits (`010`, `+5`), else the canonical form. `Err` is the
/// server's text.
pub(crate) fn normalise(text: &str) -> Result<String, &'static str> {
    let amount = Quantity::parse(text)?;
    let text = text.trim();
    if amount.nanos == 0 {
        return Ok("0".to_owned());
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let Some((_, exponent, format)) = interpret(suffix) else { return Ok(amount.canonical()) };
    let as_written = match format {
        Format::Binary => {
            let value: i128 = digits.parse().unwrap_or_default();
            fraction.is_empty() && exponent % 10 == 0 && value & 7 != 0 && digits.len() < 12
        }
        Format::Decimal | Format::Exponent => {
            let scale = exponent.saturating_sub(places);
            let fits = scale >= -9 && digits.len() < 18;
            fits && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    };
    Ok(if as_written { text.to_owned() } else { amount.canonical() })
}

/// A warning about an amount of bytes that is not whole.
pub(crate) fn fraction_warning(field: &str, amount: &str) -> Option<String> {
    let parsed = Quantity::parse(amount).ok()?;
    let whole = parsed.rounded_up_to_milli().nanos() % 1_000_000_000 == 0;
    (!whole).then(|| {
        format!("{field}: fractional byte value {amount:?} is invalid, must be an integer")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (given, printed) in [
            ("0", "0"),
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("0.1Gi", "107374182400m"),
            ("100k", "100k"),
            ("1000k", "1M"),
            ("2e3", "2e3"),
            ("20e2", "2e3"),
            ("010", "010"),
            ("-1", "-1"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(normalise(given).as_deref(), Ok(printed), "{given}");
        }
        assert_eq!(normalise("x"), Err(FORMAT_WRONG));
        assert_eq!(normalise("1x"), Err(FORMAT_WRONG));
        assert_eq!(normalise("1kk"), Err(SUFFIX));
    }
}
