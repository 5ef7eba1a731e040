//! The client's side of a websocket (RFC 6455) that only listens.

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::stream::Part;

/// Any 16 bytes in base64: a server that knows the protocol answers to each.
pub(crate) const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

/// A frame: its opcode and what it carries.
type Frame = (u8, Vec<u8>);

/// A connection after its upgrade.
pub(crate) struct Websocket {
    connection: TokioIo<Upgraded>,
    /// What came and is no whole frame yet: a wait may be given up at any time.
    received: Vec<u8>,
}

impl Websocket {
    pub(crate) fn new(connection: Upgraded) -> Self {
        Self { connection: TokioIo::new(connection), received: Vec::new() }
    }

    /// What the next frame brings.
    pub(crate) async fn part(&mut self) -> Part {
        loop {
            if let Some((opcode, payload)) = take_frame(&mut self.received) {
                match opcode {
                    1 => return Part::Frame("text", payload),
                    2 => return Part::Frame("binary", payload),
                    8 => return Part::End(close_text(&payload)),
                    9 => self.pong(&payload).await,
                    _ => return Part::Frame("other", payload),
                }
                continue;
            }
            match self.connection.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return Part::End("cut".to_owned()),
                Ok(_) => {}
            }
        }
    }

    /// Answers a ping. The mask that a client must use is one that changes nothing.
    async fn pong(&mut self, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap_or_default() & 0x7f;
        let frame = [&[0x80 | 0xa, 0x80 | length, 0, 0, 0, 0], payload].concat();
        // If it cannot be sent, the next read says that the connection is cut.
        drop(self.connection.write_all(&frame).await);
    }
}

/// Takes the first frame off what was received, if it is whole. Servers do not mask.
fn take_frame(received: &mut Vec<u8>) -> Option<Frame> {
    let opcode = received.first()? & 15;
    let (start, length): (usize, usize) = match received.get(1)? & 127 {
        126 => (4, number(received.get(2..4)?)),
        127 => (10, number(received.get(2..10)?)),
        short => (2, usize::from(short)),
    };
    let end = start.checked_add(length)?;
    let payload = received.get(start..end)?.to_vec();
    received.drain(..end);
    Some((opcode, payload))
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

/// A close frame in words: its code and its reason, if it has them.
fn close_text(payload: &[u8]) -> String {
    let Some((code, reason)) = payload.split_at_checked(2) else { return "close".to_owned() };
    let text = format!("close {} {}", number(code), String::from_utf8_lossy(reason));
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_when_they_are_whole() {
        let mut received = vec![0x81, 2, b'a'];
        assert_eq!(take_frame(&mut received), None);
        received.extend([b'b', 0x82, 0]);
        assert_eq!(take_frame(&mut received), Some((1, b"ab".to_vec())));
        assert_eq!(take_frame(&mut received), Some((2, Vec::new())));
        assert!(received.is_empty());
        let long = vec![7; 70_000];
        for head in [vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70], vec![0x81, 126, 0x01, 0x00]] {
            let size = if head.len() == 4 { 256 } else { long.len() };
            received = [&head[..], &long[..size]].concat();
            assert_eq!(take_frame(&mut received), Some((1, long[..size].to_vec())));
        }
    }

    #[test]
    fn close_frames_have_a_code_and_a_reason() {
        assert_eq!(close_text(&[]), "close");
        assert_eq!(close_text(&[3, 232]), "close 1000");
        assert_eq!(close_text(&[3, 233, b'b', b'y', b'e']), "close 1001 bye");
    }
}
