//! Reads an HTTP/1.1 answer from its bytes, as far as it came.
//!
//! **Invariant**: pure; what is missing is said to be missing, never made up.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    /// The body without its framing, as far as it came.
    pub body: Vec<u8>,
    /// The framing says that nothing is missing.
    pub whole: bool,
    /// Only the end of the connection ends the body.
    pub until_close: bool,
    /// Bytes followed a whole body.
    pub excess: bool,
    /// The connection can carry another request.
    pub kept: bool,
}

/// None: the head is not whole, or is none.
pub fn read(raw: &[u8]) -> Option<Answer> {
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    if !first.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = first.next()?.parse().ok()?;
    let headers: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let header =
        |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let content_type = header("content-type").unwrap_or_default().to_owned();
    let rest = &raw[end + 4..];
    let mut answer = Answer {
        status,
        content_type,
        body: rest.to_vec(),
        whole: false,
        until_close: false,
        excess: false,
        kept: false,
    };
    if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        let (body, whole, used) = unchunk(rest);
        answer.excess = whole && used < rest.len();
        (answer.body, answer.whole) = (body, whole);
    } else if let Some(length) =
        header("content-length").and_then(|length| length.parse::<usize>().ok())
    {
        answer.whole = rest.len() >= length;
        answer.excess = rest.len() > length;
        answer.body.truncate(length);
    } else {
        answer.until_close = true;
    }
    let closes = header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close"));
    answer.kept = answer.whole && !answer.excess && !closes;
    Some(answer)
}

/// The content of chunks, whether the last one came, and how many bytes that took.
fn unchunk(raw: &[u8]) -> (Vec<u8>, bool, usize) {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = raw[at..].windows(2).position(|two| two == b"\r\n") else {
            return (body, false, at);
        };
        let size = std::str::from_utf8(&raw[at..at + line]).ok();
        let size =
            size.and_then(|size| usize::from_str_radix(size.split(';').next()?.trim(), 16).ok());
        let Some(size) = size else { return (body, false, at) };
        at += line + 2;
        let there = size.min(raw.len() - at);
        body.extend_from_slice(&raw[at..at + there]);
        at += there;
        if raw[at..].len() < 2 || there < size {
            return (body, false, at);
        }
        at += 2;
        if size == 0 {
            return (body, true, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunked_body_is_whole_only_with_its_last_chunk() {
        let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let whole = read(raw).expect("an answer");
        assert_eq!((whole.body.as_slice(), whole.whole), (&b"abcde"[..], true));
        for cut in 0..raw.len() {
            if let Some(answer) = read(&raw[..cut]) {
                assert!(!answer.whole && b"abcde".starts_with(&answer.body), "cut at {cut}");
            }
        }
    }
}
