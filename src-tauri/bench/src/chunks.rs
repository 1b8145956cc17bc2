//! Takes the chunks of an HTTP/1.1 body apart.
//!
//! **Invariant**: the bytes of the body come out in order, wherever the reads were cut.

use anyhow::{Result, bail};

#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// In a size line, with the digits so far.
    #[default]
    Size,
    Digits(usize),
    /// Behind the digits, up to the end of the line.
    Line(usize),
    Data(usize),
    /// The line break behind a chunk.
    Break,
    /// The lines behind the last chunk; true while the present one is empty.
    Last(bool),
}

impl Chunks {
    /// Appends the body in `input` to `body`. Some: the body is over, and so many bytes of `input` belong to it.
    pub(crate) fn take(&mut self, input: &[u8], body: &mut Vec<u8>) -> Result<Option<usize>> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            self.state = match std::mem::take(&mut self.state) {
                State::Size => State::Digits(digit(byte)?),
                State::Digits(size) if byte.is_ascii_hexdigit() => {
                    State::Digits(size * 16 + digit(byte)?)
                }
                State::Digits(size) | State::Line(size) => match (byte, size) {
                    (b'\n', 0) => State::Last(true),
                    (b'\n', size) => State::Data(size),
                    _ => State::Line(size),
                },
                State::Data(left) => {
                    let piece = &input[at..][..left.min(input.len() - at)];
                    body.extend_from_slice(piece);
                    at += piece.len();
                    self.state = if piece.len() == left {
                        State::Break
                    } else {
                        State::Data(left - piece.len())
                    };
                    continue;
                }
                State::Break if byte == b'\n' => State::Size,
                State::Break => State::Break,
                State::Last(true) if byte == b'\n' => return Ok(Some(at + 1)),
                State::Last(_) if byte == b'\n' => State::Last(true),
                State::Last(empty) => State::Last(empty && byte == b'\r'),
            };
            at += 1;
        }
        Ok(None)
    }
}

fn digit(byte: u8) -> Result<usize> {
    match char::from(byte).to_digit(16) {
        Some(digit) => Ok(digit as usize),
        None => bail!("a chunk begins with byte {byte}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_gives_the_same_body() {
        let wire = b"5\r\nhello\r\n10;x=y\r\n, world and more\r\n0\r\nx: y\r\n\r\nnext";
        for cut in 0..=wire.len() {
            let (mut chunks, mut body) = (Chunks::default(), Vec::new());
            let first = chunks.take(&wire[..cut], &mut body).expect("chunks");
            let end = match first {
                Some(end) => end,
                None => cut + chunks.take(&wire[cut..], &mut body).expect("chunks").expect("over"),
            };
            assert_eq!(&wire[end..], b"next", "cut at {cut}");
            assert_eq!(body, b"hello, world and more", "cut at {cut}");
        }
        assert!(Chunks::default().take(b"zz", &mut Vec::new()).is_err());
    }
}
