//! Reads an event stream from its bytes, by the rules of the standard and nothing else.
//!
//! **Invariant**: pure, and shares no code with whatever is checked.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub name: Option<String>,
    pub data: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    pub events: Vec<Event>,
    /// The data of an event whose blank line never came.
    pub unfinished: Option<String>,
    /// The bytes end inside an event, or are no text.
    pub broken: Option<&'static str>,
}

/// What [`Stream::broken`] says of bytes that are no text.
pub const NO_TEXT: &str = "a line is not UTF-8";

pub fn read(bytes: &[u8]) -> Stream {
    let mut stream = Stream::default();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let (mut name, mut data): (Option<String>, Option<String>) = (None, None);
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        let line = &rest[..end];
        let two = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        rest = &rest[end + 1 + usize::from(two)..];
        let counts = line.is_empty() || [&b"data"[..], b"event"].contains(&field(line));
        let Some(line) = std::str::from_utf8(line).ok().or((!counts).then_some(":")) else {
            // Whoever reads text need not go on from here.
            stream.broken = Some(NO_TEXT);
            return stream;
        };
        if line.is_empty() {
            if let Some(data) = data.take() {
                stream.events.push(Event { name: name.take(), data });
            }
            name = None;
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            "event" => name = Some(value.to_owned()),
            _ => {}
        }
    }
    if data.is_some() || name.is_some() || !rest.is_empty() {
        stream.broken = stream.broken.or(Some("the bytes end inside an event"));
    }
    // Some readers take the last line for whole when the connection ends.
    if !rest.is_empty()
        && let Some(value) =
            std::str::from_utf8(rest).ok().and_then(|line| line.strip_prefix("data:"))
    {
        let value = value.strip_prefix(' ').unwrap_or(value);
        data = Some(data.map_or_else(|| value.to_owned(), |data| format!("{data}\n{value}")));
    }
    stream.unfinished = data;
    stream
}

/// The name of a line's field.
fn field(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_and_every_field_form_gives_the_same_events() {
        for ending in ["\n", "\r\n", "\r"] {
            let text =
                "\u{feff}: hello\nevent: a\nid: 1\ndata: one\ndata:two\n\ndata:é\n\nretry: 5\n\n"
                    .replace('\n', ending);
            let stream = read(text.as_bytes());
            let seen: Vec<_> = stream
                .events
                .iter()
                .map(|event| (event.name.as_deref(), event.data.as_str()))
                .collect();
            assert_eq!(seen, [(Some("a"), "one\ntwo"), (None, "é")]);
            assert_eq!((stream.unfinished, stream.broken), (None, None));
        }
    }

    #[test]
    fn what_has_no_blank_line_is_no_event() {
        let stream = read(b"data: one\n\ndata: two\n");
        assert_eq!((stream.events.len(), stream.unfinished.as_deref()), (1, Some("two")));
        assert!(stream.broken.is_some());
    }

    #[test]
    fn bytes_that_are_no_text_end_it_only_where_they_would_be_read() {
        let stream = read(
            b"data: one\n\n\xffata: two\n\n: \xff\n\ndata: three\n\ndata: \xff\n\ndata: five\n\n",
        );
        let seen: Vec<_> = stream.events.iter().map(|event| event.data.as_str()).collect();
        assert_eq!((seen, stream.broken), (vec!["one", "three"], Some(NO_TEXT)));
    }
}
