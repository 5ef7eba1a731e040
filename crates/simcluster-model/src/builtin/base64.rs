//! Base64 as Go's `encoding/base64` reads it: line breaks do not count, trailing bits are ignored, and
//! an error names the byte at which the reader stood.

/// The bytes; `Err` is the offset that Go's error names.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let input = text.as_bytes();
    let significant = |from: usize| {
        let rest = input.get(from..).unwrap_or_default();
        let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        from + skipped
    };
    let mut out = Vec::with_capacity(input.len() / 4 * 3);
    let mut position = 0;
    loop {
        let mut quantum = [0_u8; 4];
        let mut filled = 0;
        while filled < 4 {
            position = significant(position);
            let Some(byte) = input.get(position).copied() else {
                return if filled == 0 { Ok(out) } else { Err(position - filled) };
            };
            position += 1;
            if let Some(bits) = value_of(byte) {
                if let Some(slot) = quantum.get_mut(filled) {
                    *slot = bits;
                }
                filled += 1;
                continue;
            }
            if byte != b'=' || filled < 2 {
                return Err(position - 1);
            }
            if filled == 2 {
                position = significant(position);
                match input.get(position) {
                    None => return Err(input.len()),
                    Some(b'=') => position += 1,
                    Some(_) => return Err(position - 1),
                }
            }
            let end = significant(position);
            if end < input.len() {
                return Err(end);
            }
            push(&mut out, quantum, filled - 1);
            return Ok(out);
        }
        push(&mut out, quantum, 3);
    }
}

fn push(out: &mut Vec<u8>, [a, b, c, d]: [u8; 4], count: usize) {
    let bytes = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
    out.extend(bytes.iter().take(count));
}

fn value_of(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_go_does() {
        assert_eq!(decode("MQ==\n"), Ok(b"1".to_vec()));
        assert_eq!(decode("aGVs\nbG8="), Ok(b"hello".to_vec()));
        assert_eq!(decode("AAEC"), Ok(vec![0, 1, 2]));
        assert_eq!(decode("MR=="), Ok(b"1".to_vec()));
        assert_eq!(decode("not base64!"), Err(3));
        assert_eq!(decode("YQ"), Err(0));
        assert_eq!(decode("YQ="), Err(3));
        assert_eq!(decode("YQ==x"), Err(4));
    }
}
