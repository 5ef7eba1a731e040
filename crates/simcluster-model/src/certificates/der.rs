//! Reading DER, with the faults that Go's `encoding/asn1` words.

/// Universal tags.
pub(super) const INTEGER: u8 = 2;
pub(super) const BIT_STRING: u8 = 3;
pub(super) const OCTET_STRING: u8 = 4;
pub(super) const OID: u8 = 6;
pub(super) const SEQUENCE: u8 = 16;
pub(super) const SET: u8 = 17;

/// One element: what its first bytes say, and what is in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<'a> {
    /// 0 is universal, 2 specific to the context.
    pub(super) class: u8,
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// The whole of it, the first bytes included.
    pub(super) raw: &'a [u8],
}

impl<'a> Element<'a> {
    /// Whether it is of a universal type.
    pub(super) fn is(&self, tag: u8) -> bool {
        self.class == 0 && self.tag == tag
    }

    /// What is in it, to be read.
    pub(super) fn inside(&self) -> Reader<'a> {
        Reader { bytes: self.content, at: 0 }
    }

    /// The bytes of a bit string of whole bytes.
    pub(super) fn bits(&self) -> Option<&'a [u8]> {
        self.content.split_first().filter(|(unused, _)| **unused == 0).map(|(_, bytes)| bytes)
    }
}

/// The first bytes of an element.
struct Head {
    class: u8,
    tag: u8,
    compound: bool,
    length: usize,
}

fn syntax(what: &str) -> String {
    format!("asn1: syntax error: {what}")
}

/// Reads one element after another.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next element, of whatever type.
    pub(super) fn any(&mut self) -> Result<Element<'a>, String> {
        let start = self.at;
        let head = self.head().map_err(syntax)?;
        self.element(start, head)
    }

    /// The next element, which must be of a universal type. `field` is what Go's struct calls it.
    pub(super) fn expect(&mut self, tag: u8, field: &str) -> Result<Element<'a>, String> {
        let start = self.at;
        let head = self.head().map_err(syntax)?;
        if (head.class, head.tag) == (0, tag) {
            return self.element(start, head);
        }
        let Head { class, tag: other, length, compound } = head;
        Err(format!(
            "asn1: structure error: tags don't match ({tag} vs {{class:{class} tag:{other} \
             length:{length} isCompound:{compound}}}) {{optional:false explicit:false \
             application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 \
             set:false omitEmpty:false}} {field} @{}",
            self.at
        ))
    }

    /// The element whose first bytes have been read.
    fn element(&mut self, start: usize, head: Head) -> Result<Element<'a>, String> {
        let end = self.at.checked_add(head.length).ok_or_else(|| syntax("data truncated"))?;
        let content = self.bytes.get(self.at..end).ok_or_else(|| syntax("data truncated"))?;
        let raw = self.bytes.get(start..end).unwrap_or_default();
        self.at = end;
        Ok(Element { class: head.class, tag: head.tag, content, raw })
    }

    fn head(&mut self) -> Result<Head, &'static str> {
        let truncated = "truncated tag or length";
        let first = self.byte().ok_or("sequence truncated")?;
        let tag = first & 0x1f;
        if tag == 0x1f {
            return Err("high tag number");
        }
        let length = match self.byte().ok_or(truncated)? {
            short @ 0..=0x7f => usize::from(short),
            0x80 => return Err("indefinite length found (not DER)"),
            long => {
                let mut length: usize = 0;
                for _ in 0..(long & 0x7f) {
                    let byte = self.byte().ok_or(truncated)?;
                    length = length
                        .checked_mul(256)
                        .and_then(|length| length.checked_add(usize::from(byte)))
                        .ok_or("length too large")?;
                }
                length
            }
        };
        Ok(Head { class: first >> 6, tag, compound: first & 0x20 != 0, length })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at = self.at.saturating_add(usize::from(byte.is_some()));
        byte
    }
}
