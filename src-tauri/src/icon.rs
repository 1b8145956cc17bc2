//! The icon in the tray: two bars, what is left of the best account's shortest and longest window.
//!
//! Pure drawing into RGBA pixels. The best account is the one of which most is left in the window that binds it. A
//! window that nobody reported is an empty track; an old reading, or no endpoint, dims the whole.
//!
//! **Invariant**: equal [`Bars`] give equal pixels, and no bar is drawn for a number that is not known.

use crate::picture::{Account, Endpoint, Picture, Window};

/// A reading older than this is shown dimmed, in seconds.
const STALE_AFTER: i64 = 3_600;

/// Steps of a bar, so that the icon is not drawn anew for every tenth of a percent.
const STEPS: f64 = 24.0;

/// What the icon shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bars {
    /// What is left of the shortest window, in steps of [`STEPS`].
    shortest: Option<u8>,
    /// What is left of the longest; absent where there is only one window.
    longest: Option<u8>,
    dimmed: bool,
}

impl Bars {
    /// `now` in unix seconds.
    pub(crate) fn of(picture: &Picture, now: i64) -> Self {
        let best = picture
            .accounts
            .iter()
            .filter(|account| account.state == "ready" && !account.windows.is_empty())
            .max_by(|a, b| binding(a, now).total_cmp(&binding(b, now)))
            .or_else(|| picture.accounts.iter().find(|account| !account.windows.is_empty()));
        let listening = matches!(picture.endpoint, Endpoint::Listening { .. });
        let Some(best) = best else {
            return Self { dimmed: !listening, ..Self::default() };
        };
        let stale = best.read_at.is_none_or(|at| now - at > STALE_AFTER);
        let (shortest, longest) = match best.windows.as_slice() {
            [] => (None, None),
            [only] => (Some(only), None),
            [first, .., last] => (Some(first), Some(last)),
        };
        Self {
            shortest: shortest.map(|window| steps(window, now)),
            longest: longest.map(|window| steps(window, now)),
            dimmed: stale || !listening,
        }
    }
}

/// What is left of the window that binds, in percent.
fn binding(account: &Account, now: i64) -> f64 {
    account.windows.iter().map(|window| window.left(now)).fold(100.0, f64::min)
}

/// Nothing left is no step; anything left is at least one.
fn steps(window: &Window, now: i64) -> u8 {
    let share = window.left(now) / 100.0;
    if share <= 0.0 { 0 } else { (share * STEPS).round().clamp(1.0, STEPS) as u8 }
}

/// How the system wants its icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Colour,
    /// Black of varying opacity, which the system tints by itself.
    Template,
}

type Rgb = [u8; 3];

const PLENTY: Rgb = [0x3d, 0xb8, 0xd8];
const LITTLE: Rgb = [0xf2, 0xa6, 0x4a];
const NEARLY_NOTHING: Rgb = [0xe5, 0x53, 0x4b];
/// Seen on a light panel and on a dark one.
const TRACK: Rgb = [0x8a, 0x97, 0xa3];
const TRACK_OPACITY: f32 = 0.55;
const DIMMED_OPACITY: f32 = 0.45;

/// Draws the bars into `size` × `size` pixels of red, green, blue and opacity.
pub(crate) fn draw(bars: Bars, size: u32, look: Look) -> Vec<u8> {
    let mut pixels = vec![0; (size * size * 4) as usize];
    let unit = size as f32 / 32.0;
    let rows = [(bars.shortest, 5.0), (bars.longest, 18.0)];
    for (level, top) in rows {
        let track =
            Bar { left: 2.0 * unit, top: top * unit, width: 28.0 * unit, height: 9.0 * unit };
        for y in 0..size {
            for x in 0..size {
                let inside = track.covers(x, y);
                if inside == 0.0 {
                    continue;
                }
                let filled = level.map_or(0.0, |level| {
                    let end = track.left + track.width * f32::from(level) / STEPS as f32;
                    (end - x as f32).clamp(0.0, 1.0)
                });
                let at = ((y * size + x) * 4) as usize;
                pixels[at..at + 4].copy_from_slice(&pixel(
                    level,
                    filled,
                    inside,
                    bars.dimmed,
                    look,
                ));
            }
        }
    }
    pixels
}

/// One pixel of a bar, of which `filled` is what is left and `inside` lies within the bar.
fn pixel(level: Option<u8>, filled: f32, inside: f32, dimmed: bool, look: Look) -> [u8; 4] {
    let colour = match level {
        Some(0..=2) => NEARLY_NOTHING,
        Some(3..=6) => LITTLE,
        _ => PLENTY,
    };
    let mixed = |channel: usize| match look {
        Look::Template => 0,
        Look::Colour => {
            let (full, empty) = (f32::from(colour[channel]), f32::from(TRACK[channel]));
            (empty + (full - empty) * filled).round() as u8
        }
    };
    let opacity = TRACK_OPACITY + (1.0 - TRACK_OPACITY) * filled;
    let opacity = opacity * inside * if dimmed { DIMMED_OPACITY } else { 1.0 };
    [mixed(0), mixed(1), mixed(2), (opacity * 255.0).round() as u8]
}

/// A bar with round corners, in pixels.
struct Bar {
    left: f32,
    top: f32,
    width: f32,
    height: f32,
}

impl Bar {
    /// How much of a pixel lies inside, from sixteen samples.
    fn covers(&self, x: u32, y: u32) -> f32 {
        let samples = (0..16).filter(|sample| {
            let (column, row) = ((sample % 4) as f32, (sample / 4) as f32);
            self.contains(x as f32 + (column + 0.5) / 4.0, y as f32 + (row + 0.5) / 4.0)
        });
        samples.count() as f32 / 16.0
    }

    fn contains(&self, x: f32, y: f32) -> bool {
        let radius = self.height / 3.0;
        let (right, bottom) = (self.left + self.width, self.top + self.height);
        if x < self.left || x > right || y < self.top || y > bottom {
            return false;
        }
        let dx = (self.left + radius - x).max(x - (right - radius)).max(0.0);
        let dy = (self.top + radius - y).max(y - (bottom - radius)).max(0.0);
        dx * dx + dy * dy <= radius * radius
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::SNAPSHOT;

    const SIZE: u32 = 32;
    /// The middle lines of the two bars.
    const ROWS: [u32; 2] = [9, 22];

    fn listening() -> Picture {
        let mut picture = Picture::default();
        picture.hear(SNAPSHOT, false).expect("a message");
        picture
    }

    fn at(pixels: &[u8], x: u32, y: u32) -> [u8; 4] {
        let at = ((y * SIZE + x) * 4) as usize;
        pixels[at..at + 4].try_into().expect("four channels")
    }

    /// How many pixels of a bar's middle line are filled.
    fn filled(pixels: &[u8], row: u32) -> usize {
        (0..SIZE).filter(|x| at(pixels, *x, row)[3] == 255).count()
    }

    #[test]
    fn the_bars_are_as_long_as_what_is_left() {
        let bars = Bars::of(&listening(), 11);
        assert_eq!(bars, Bars { shortest: Some(20), longest: Some(16), dimmed: false });
        let pixels = draw(bars, SIZE, Look::Colour);
        // 84 % and 68 % of 28 pixels.
        assert_eq!(ROWS.map(|row| filled(&pixels, row)), [23, 18]);
        assert_eq!(at(&pixels, 10, ROWS[0]), [0x3d, 0xb8, 0xd8, 255]);
        assert_eq!(at(&pixels, 0, 0), [0; 4], "the corner is clear");
        assert_eq!(at(&pixels, 10, 15), [0; 4], "between the bars is nothing");
    }

    #[test]
    fn the_best_account_is_the_one_that_can_go_on_longest() {
        let mut picture = listening();
        let mut other = picture.accounts[0].clone();
        other.windows = vec![Window { minutes: 10_080, used_percent: 10.0, resets_at: None }];
        picture.accounts.push(other);
        let bars = Bars::of(&picture, 11);
        assert_eq!(bars, Bars { shortest: Some(22), longest: None, dimmed: false });
        let pixels = draw(bars, SIZE, Look::Colour);
        assert_eq!(filled(&pixels, ROWS[1]), 0, "one window is one bar and an empty track");

        picture.accounts[1].state = "cannot serve".to_owned();
        assert_eq!(Bars::of(&picture, 11).shortest, Some(20));
    }

    #[test]
    fn an_old_reading_and_a_missing_endpoint_dim_the_icon() {
        let picture = listening();
        assert!(!Bars::of(&picture, 10 + STALE_AFTER).dimmed);
        assert!(Bars::of(&picture, 11 + STALE_AFTER).dimmed);
        let down = Picture { endpoint: Endpoint::Down("No.".to_owned()), ..picture.clone() };
        let bars = Bars::of(&down, 11);
        assert!(bars.dimmed);
        let (bright, dim) =
            (draw(Bars::of(&picture, 11), SIZE, Look::Colour), draw(bars, SIZE, Look::Colour));
        assert!(at(&dim, 10, ROWS[0])[3] < at(&bright, 10, ROWS[0])[3] / 2);
    }

    #[test]
    fn nothing_known_is_empty_tracks_and_nothing_left_is_not_a_sliver() {
        let unknown = draw(Bars::of(&Picture::default(), 0), SIZE, Look::Colour);
        assert_eq!(ROWS.map(|row| filled(&unknown, row)), [0, 0]);
        assert!(at(&unknown, 10, ROWS[0])[3] > 0, "a track is there");
        let mut picture = listening();
        picture.accounts[0].windows[0].used_percent = 100.0;
        picture.accounts[0].windows[1].used_percent = 99.9;
        let pixels = draw(Bars::of(&picture, 11), SIZE, Look::Colour);
        assert_eq!(ROWS.map(|row| filled(&pixels, row)), [0, 1]);
        assert_eq!(at(&pixels, 2, ROWS[1])[..3], NEARLY_NOTHING);
    }

    #[test]
    fn a_template_has_no_colour() {
        let pixels = draw(Bars::of(&listening(), 11), 44, Look::Template);
        assert_eq!(pixels.len(), 44 * 44 * 4);
        assert!(pixels.chunks(4).all(|pixel| pixel[..3] == [0; 3]));
        assert!(pixels.chunks(4).any(|pixel| pixel[3] == 255));
    }

    #[test]
    fn what_cannot_be_seen_does_not_change_the_icon() {
        let mut picture = listening();
        let before = Bars::of(&picture, 11);
        picture.accounts[0].windows[0].used_percent += 0.5;
        assert_eq!(Bars::of(&picture, 12), before);
    }
}
