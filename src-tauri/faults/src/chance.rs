//! Numbers that look random and follow from a seed.
//!
//! A fault is named by its seed alone, on any machine and in any later build that did not change how faults are made, so no
//! library's generator, which may change with its version, is used (this one is SplitMix64).
//!
//! **Invariant**: the same seed gives the same numbers.

#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn of(seed: u64) -> Self {
        // Neighbouring seeds are stirred apart, so that seed and seed + 1 do not share a tail.
        Self(seed.wrapping_mul(0xA24B_AED4_963E_E407).wrapping_add(0x9FB2_1C65_1E98_DF25))
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is more than zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// A number from `from` to `to`, both included.
    pub fn within(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from + 1)
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn shuffle<T>(&mut self, what: &mut [T]) {
        for at in (1..what.len()).rev() {
            what.swap(at, self.below(at + 1));
        }
    }
}
