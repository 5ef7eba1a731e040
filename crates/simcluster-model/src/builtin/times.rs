//! `metav1.Time` and `metav1.MicroTime`: reading as Go's `time.Parse` does, with its error texts.

use std::fmt::Write as _;

use jiff::civil;
use jiff::tz::Offset;

use crate::time::format_seconds;

const SECONDS_LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICROS_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// A time as `metav1.Time` prints it: UTC, fractions cut. `Err` is the server's text.
pub(super) fn normalise_seconds(text: &str) -> Result<String, String> {
    Ok(format_seconds(Reader::new(text, SECONDS_LAYOUT).read(false)?))
}

/// A time as `metav1.MicroTime` prints it; exactly six digits are read.
pub(super) fn normalise_micros(text: &str) -> Result<String, String> {
    Ok(format_micros(Reader::new(text, MICROS_LAYOUT).read(true)?))
}

/// A time as `metav1.MicroTime` prints it.
pub(crate) fn format_micros(time: jiff::Timestamp) -> String {
    let micros = time.subsec_microsecond();
    format!("{}.{micros:06}Z", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

struct Reader<'a> {
    all: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl<'a> Reader<'a> {
    fn new(all: &'a str, layout: &'static str) -> Self {
        Self { all, rest: all, layout }
    }

    fn read(mut self, micros: bool) -> Result<jiff::Timestamp, String> {
        let year = self.digits(4, "2006")?;
        self.literal("-")?;
        let month = self.ranged("01", 1..=12, "month")?;
        self.literal("-")?;
        let day = self.digits(2, "02")?;
        self.literal("T")?;
        let hour = self.ranged("15", 0..=23, "hour")?;
        self.literal(":")?;
        let minute = self.ranged("04", 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.ranged("05", 0..=59, "second")?;
        let nanos = if micros { self.exact_micros()? } else { self.optional_fraction() };
        let offset_seconds = self.offset()?;
        if !self.rest.is_empty() {
            return Err(self.because(&format!("extra text: {}", quoted(self.rest))));
        }
        let narrow = |value: i32| i8::try_from(value).unwrap_or_default();
        let date =
            civil::Date::new(i16::try_from(year).unwrap_or_default(), narrow(month), narrow(day))
                .map_err(|_| self.because("day out of range"))?;
        let time = civil::Time::new(narrow(hour), narrow(minute), narrow(second), nanos)
            .map_err(|_| self.because("second out of range"))?;
        Offset::from_seconds(offset_seconds)
            .and_then(|offset| offset.to_timestamp(date.to_datetime(time)))
            .map_err(|_| self.because("year out of range"))
    }

    fn digits(&mut self, count: usize, element: &str) -> Result<i32, String> {
        let text = self.rest.get(..count).filter(|text| is_number(text));
        let number = text.and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.cannot(self.rest, element))?;
        self.rest = self.rest.get(count..).unwrap_or_default();
        Ok(number)
    }

    fn ranged(
        &mut self,
        element: &str,
        range: std::ops::RangeInclusive<i32>,
        name: &str,
    ) -> Result<i32, String> {
        let value = self.digits(2, element)?;
        if range.contains(&value) {
            Ok(value)
        } else {
            Err(self.because(&format!("{name} out of range")))
        }
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        let Some(rest) = self.rest.strip_prefix(text) else {
            return Err(self.cannot(self.rest, text));
        };
        self.rest = rest;
        Ok(())
    }

    /// A fraction that the layout does not ask for is read and cut.
    fn optional_fraction(&mut self) -> i32 {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else { return 0 };
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        if end > 0 {
            self.rest = digits.get(end..).unwrap_or_default();
        }
        0
    }

    fn exact_micros(&mut self) -> Result<i32, String> {
        let digits = self.rest.strip_prefix(['.', ',']);
        let text = digits.and_then(|digits| digits.get(..6)).filter(|text| is_number(text));
        let micros = text.and_then(|text| text.parse::<i32>().ok());
        let micros = micros.ok_or_else(|| self.cannot(self.rest, ".000000"))?;
        self.rest = digits.and_then(|digits| digits.get(6..)).unwrap_or_default();
        Ok(micros * 1000)
    }

    fn offset(&mut self) -> Result<i32, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = || self.cannot(self.rest, "Z07:00");
        let text = self.rest.get(..6).ok_or_else(bad)?;
        let sign = match text.get(..1) {
            Some("+") => 1,
            Some("-") => -1,
            _ => return Err(bad()),
        };
        let number = |part: Option<&str>| {
            part.filter(|part| is_number(part)).and_then(|part| part.parse::<i32>().ok())
        };
        let (Some(hours), Some(":"), Some(minutes)) =
            (number(text.get(1..3)), text.get(3..4), number(text.get(4..6)))
        else {
            return Err(bad());
        };
        self.rest = self.rest.get(6..).unwrap_or_default();
        if hours > 24 {
            return Err(self.because("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(self.because("time zone offset minute out of range"));
        }
        Ok(sign * (hours * 3600 + minutes * 60))
    }

    fn cannot(&self, rest: &str, element: &str) -> String {
        let (all, rest, layout) = (quoted(self.all), quoted(rest), quoted(self.layout));
        format!("parsing time {all} as {layout}: cannot parse {rest} as {}", quoted(element))
    }

    fn because(&self, why: &str) -> String {
        format!("parsing time {}: {why}", quoted(self.all))
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// As Go's package `time` quotes: bytes that are not printable ASCII as numbers.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            0x20..0x80 => out.push(char::from(byte)),
            0x00..=0x1f | 0x80..=0xff => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}
