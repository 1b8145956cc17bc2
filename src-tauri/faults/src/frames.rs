//! The frames of a WebSocket, written and read by hand, since no library writes half a frame or a wrong one.
//!
//! What a backend writes is unmasked, what it reads is masked. How a backend's frames are to be understood is not written
//! here: that is the checker's.
//!
//! **Invariant**: pure; whatever the form, a reader of frames finds the same messages.

use crate::chance::Chance;

pub const CONTINUATION: u8 = 0;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;

/// How messages are written down.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Some messages come in several frames.
    pub split: bool,
    /// Pings stand between frames, also between those of one message.
    pub pings: bool,
}

impl Form {
    pub fn any(chance: &mut Chance) -> Self {
        Self { split: chance.one_in(4), pings: chance.one_in(4) }
    }

    /// One message.
    pub fn message(self, text: &str, chance: &mut Chance) -> Vec<u8> {
        let bytes = text.as_bytes();
        let mut all = Vec::with_capacity(bytes.len() + 16);
        let mut cuts = vec![0, bytes.len()];
        if self.split && chance.one_in(2) {
            // Anywhere, also inside a character, and an empty frame is one.
            cuts.extend((0..chance.within(1, 4)).map(|_| chance.below(bytes.len() + 1)));
            cuts.sort_unstable();
        }
        let last = cuts.len() - 2;
        for (at, pair) in cuts.windows(2).enumerate() {
            if self.pings && chance.one_in(3) {
                all.extend(frame(PING, true, b"are you there?"));
            }
            let kind = if at == 0 { TEXT } else { CONTINUATION };
            all.extend(frame(kind, at == last, &bytes[pair[0]..pair[1]]));
        }
        all
    }
}

/// A frame as a backend writes it.
pub fn frame(kind: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut all = vec![kind | if last { 0x80 } else { 0 }];
    length(&mut all, payload.len(), 0);
    all.extend_from_slice(payload);
    all
}

/// A frame as a client writes it; the mask is one that changes every byte.
pub fn masked(kind: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [0x11, 0x22, 0x33, 0x44];
    let mut all = vec![kind | 0x80];
    length(&mut all, payload.len(), 0x80);
    all.extend_from_slice(&MASK);
    all.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    all
}

fn length(all: &mut Vec<u8>, length: usize, mask: u8) {
    match length {
        0..=125 => all.push(mask | length as u8),
        126..=0xffff => {
            all.push(mask | 126);
            all.extend((length as u16).to_be_bytes());
        }
        _ => {
            all.push(mask | 127);
            all.extend((length as u64).to_be_bytes());
        }
    }
}

pub fn goodbye(code: u16) -> Vec<u8> {
    frame(CLOSE, true, &[&code.to_be_bytes()[..], b"as planned"].concat())
}

/// A frame that a client wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub kind: u8,
    pub last: bool,
    pub payload: Vec<u8>,
}

/// The first frame of a client's bytes, and how many bytes it took. None: it is not whole.
pub fn asked(bytes: &[u8]) -> Option<(Asked, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (length, at) = match second & 0x7f {
        126 => (u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?), 10),
        short => (u64::from(short), 2),
    };
    let mask = bytes.get(at..at + 4)?;
    let end = at + 4 + usize::try_from(length).ok()?;
    let payload = bytes.get(at + 4..end)?;
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Some((Asked { kind: first & 0x0f, last: first & 0x80 != 0, payload }, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_writes_is_read_once_it_is_whole() {
        for length in [0, 1, 125, 126, 0xffff, 0x1_0000] {
            let payload = vec![b'p'; length];
            let bytes = masked(TEXT, &payload);
            assert_eq!(asked(&bytes[..bytes.len() - 1]), None);
            let (frame, used) = asked(&bytes).expect("whole");
            assert_eq!((frame.payload, used, frame.last), (payload, bytes.len(), true));
        }
    }
}
