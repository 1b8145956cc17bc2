//! Reads what a backend wrote on a WebSocket, by the rules of the standard and nothing else.
//!
//! **Invariant**: pure, and shares no code with whatever writes frames or is checked.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// The texts that came whole.
    pub texts: Vec<String>,
    /// The backend said goodbye, with its code.
    pub closed: Option<Option<u16>>,
    /// Why nothing after the texts counts.
    pub broken: Option<&'static str>,
}

pub fn read(bytes: &[u8]) -> Messages {
    let mut messages = Messages::default();
    let mut rest = bytes;
    let mut begun: Option<Vec<u8>> = None;
    while let Some((first, payload, after)) = frame(rest) {
        let (last, kind) = (first & 0x80 != 0, first & 0x0f);
        let wrong = match payload {
            Err(wrong) => Some(wrong),
            _ if first & 0x70 != 0 => Some("a reserved bit"),
            _ if kind & 8 != 0 && !last => Some("a piece of a control frame"),
            Ok(payload) if kind & 8 != 0 && payload.len() > 125 => Some("a long control frame"),
            Ok(payload) => match kind {
                0 | 1 if begun.is_some() != (kind == 0) => Some("pieces of two messages"),
                0 | 1 => {
                    let mut text = begun.take().unwrap_or_default();
                    text.extend_from_slice(payload);
                    match (last, String::from_utf8(text)) {
                        (false, Ok(text)) => begun = Some(text.into_bytes()),
                        (false, Err(error)) => begun = Some(error.into_bytes()),
                        (true, Ok(text)) => messages.texts.push(text),
                        (true, Err(_)) => {
                            messages.broken = Some("a message is no text");
                            return messages;
                        }
                    }
                    None
                }
                2 => Some("a message that is not meant as text"),
                8 => {
                    let code = payload.get(..2).map(|two| u16::from_be_bytes([two[0], two[1]]));
                    messages.closed = Some(code);
                    return messages;
                }
                9 | 10 => None,
                _ => Some("a kind of frame that is not known"),
            },
        };
        if wrong.is_some() {
            messages.broken = wrong;
            return messages;
        }
        rest = after;
    }
    if !rest.is_empty() || begun.is_some() {
        messages.broken = Some("the bytes end inside a message");
    }
    messages
}

type Frame<'a> = (u8, Result<&'a [u8], &'static str>, &'a [u8]);

fn frame(bytes: &[u8]) -> Option<Frame<'_>> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    if second & 0x80 != 0 {
        return Some((first, Err("a mask"), &[]));
    }
    let (length, at): (u64, usize) = match second {
        126 => (u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
        127 => (u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?), 10),
        short => (u64::from(short), 2),
    };
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    Some((first, Ok(bytes.get(at..end)?), &bytes[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;
    use crate::frames;

    #[test]
    fn every_form_gives_the_same_messages_and_a_cut_never_more() {
        let mut chance = Chance::of(1);
        let texts = ["{\"a\":\"größer 🌊\"}", "", "b"].map(str::to_owned).to_vec();
        for split in [false, true] {
            for pings in [false, true] {
                let form = frames::Form { split, pings };
                let bytes: Vec<u8> =
                    texts.iter().flat_map(|text| form.message(text, &mut chance)).collect();
                assert_eq!(read(&bytes).texts, texts);
                for cut in 0..bytes.len() {
                    let read = read(&bytes[..cut]);
                    assert!(texts.starts_with(&read.texts), "cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn a_goodbye_has_a_code_and_a_wrong_frame_ends_it() {
        let bytes = [frames::frame(1, true, b"one"), frames::goodbye(1009)].concat();
        let read_ = read(&bytes);
        assert_eq!((read_.texts.len(), read_.closed), (1, Some(Some(1009))));
        for wrong in [frames::frame(2, true, b"x"), frames::masked(1, b"x"), vec![0xc1, 0]] {
            let read = read(&[frames::frame(1, true, b"one"), wrong].concat());
            assert_eq!(read.texts, ["one"]);
            assert!(read.broken.is_some());
        }
    }
}
