//! Properties of the framing: how a stream is cut and which line endings it has cannot be seen in its events.
//!
//! **Invariant**: what is expected comes from a reader of its own, which knows whole streams only.

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use proptest::collection::vec;
use proptest::prelude::*;

use super::stream::Events;

/// The bytes of a recorded stream.
macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/cases/", $name))
    };
}

const RECORDED: [&[u8]; 12] = [
    recorded!("C01/upstream.sse"),
    recorded!("C02/upstream.sse"),
    recorded!("C04/upstream.sse"),
    recorded!("C05/upstream.sse"),
    recorded!("C09/upstream.done.sse"),
    recorded!("C11/upstream.sse"),
    recorded!("C16/upstream.A2.sse"),
    recorded!("C23/upstream.filter.sse"),
    recorded!("C43/upstream.sse"),
    recorded!("C51/upstream.sse"),
    recorded!("C53/upstream.sse"),
    recorded!("C118/upstream.sse"),
];

/// A recorded stream with plain line ends and without a mark of byte order.
fn plain(wire: &[u8]) -> String {
    let text = std::str::from_utf8(wire).expect("UTF-8").replace("\r\n", "\n");
    text.trim_start_matches('\u{feff}').to_owned()
}

/// The data of each whole event, read line by line.
fn expected(plain: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut data: Vec<&str> = Vec::new();
    for line in plain.split('\n') {
        match line.strip_prefix("data:") {
            Some(value) => data.push(value.strip_prefix(' ').unwrap_or(value)),
            None if line.is_empty() && !data.is_empty() => {
                events.push(std::mem::take(&mut data).join("\n"));
            }
            None => {}
        }
    }
    events
}

fn read(pieces: Vec<Bytes>) -> Vec<String> {
    let bytes = stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
    let mut events = Events::new(bytes);
    let mut all = Vec::new();
    while let Some(event) = events.next().now_or_never().expect("nothing to wait for") {
        all.push(event.expect("well framed"));
    }
    all
}

/// Cuts by the given sizes, over and over.
fn cut(wire: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut rest = wire;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = after;
    }
    pieces
}

/// Line endings: one kind for a whole stream, or two kinds that cannot be taken for one another in turns.
fn written(plain: &str, ending: usize, bom: bool) -> Vec<u8> {
    let mut text = String::from(if bom { "\u{feff}" } else { "" });
    match ending {
        0 => text.push_str(plain),
        1 => text.push_str(&plain.replace('\n', "\r\n")),
        2 => text.push_str(&plain.replace('\n', "\r")),
        _ => {
            for (n, line) in plain.split_inclusive('\n').enumerate() {
                match line.strip_suffix('\n') {
                    Some(line) if n % 2 == 0 => text.extend([line, "\r\n"]),
                    _ => text.push_str(line),
                }
            }
        }
    }
    text.into_bytes()
}

#[test]
fn every_single_cut_of_every_recorded_stream_gives_the_same_events() {
    for wire in RECORDED {
        let plain = plain(wire);
        let expected = expected(&plain);
        assert!(expected.len() >= 2, "{plain}");
        for ending in [1, 2] {
            let wire = written(&plain, ending, ending == 1);
            for at in 0..=wire.len() {
                let (one, two) = wire.split_at(at);
                let pieces = vec![Bytes::copy_from_slice(one), Bytes::copy_from_slice(two)];
                assert_eq!(read(pieces), expected, "ending {ending} cut at {at}");
            }
        }
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        which in 0..RECORDED.len(),
        ending in 0..4usize,
        bom: bool,
        sizes in vec(1..200usize, 1..40),
    ) {
        let plain = plain(RECORDED[which]);
        let wire = written(&plain, ending, bom);
        prop_assert_eq!(read(cut(&wire, &sizes)), expected(&plain));
    }

    #[test]
    fn a_stream_that_ends_anywhere_gives_the_events_that_were_whole(
        which in 0..RECORDED.len(),
        ending in 0..4usize,
        end in 0.0..1.0f64,
        sizes in vec(1..200usize, 1..40),
    ) {
        let plain = plain(RECORDED[which]);
        let wire = written(&plain, ending, false);
        let length = (wire.len() as f64 * end) as usize;
        let got = read(cut(&wire[..length], &sizes));
        let all = expected(&plain);
        prop_assert!(got.len() <= all.len());
        prop_assert_eq!(&got[..], &all[..got.len()]);
    }
}
