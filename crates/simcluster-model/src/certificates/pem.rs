//! PEM blocks, read as Go's `encoding/pem` reads them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A block of a PEM text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What stands in its first line, such as `CERTIFICATE`.
    pub label: String,
    /// Whether lines with a colon come before its content.
    pub has_headers: bool,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The first block of a text, and what follows it. What is no block is passed over.
#[must_use]
pub fn decode(text: &[u8]) -> Option<(Block, &[u8])> {
    let mut rest = text;
    loop {
        let (line, after) = line(rest)?;
        rest = after;
        let label = line.strip_prefix(b"-----BEGIN ").and_then(|line| line.strip_suffix(b"-----"));
        if let Some(found) = label.and_then(|label| block(label, after)) {
            return Some(found);
        }
    }
}

/// A text as one block.
#[must_use]
pub fn encode(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + &format!("-----END {label}-----\n")
}

/// The block whose first line has been read.
fn block<'a>(label: &[u8], mut rest: &'a [u8]) -> Option<(Block, &'a [u8])> {
    let end = [b"-----END ", label, b"-----"].concat();
    let (mut has_headers, mut content) = (false, Vec::new());
    loop {
        let (line, after) = line(rest)?;
        rest = after;
        if line == end {
            break;
        }
        if content.is_empty() && line.contains(&b':') {
            has_headers = true;
        } else {
            content.extend(line.iter().filter(|byte| !byte.is_ascii_whitespace()));
        }
    }
    let bytes = STANDARD.decode(content).ok()?;
    let label = String::from_utf8_lossy(label).into_owned();
    Some((Block { label, has_headers, bytes }, rest))
}

/// The first line without white space at its end, and what follows it.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = text.iter().position(|byte| *byte == b'\n');
    let (line, rest) = text.split_at_checked(end.unwrap_or(text.len()))?;
    Some((line.trim_ascii_end(), rest.strip_prefix(b"\n").unwrap_or_default()))
}
