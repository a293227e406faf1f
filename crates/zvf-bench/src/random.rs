//! Random numbers that are equal on every machine.

use std::f64::consts::TAU;

use zvf_model::random::SplitMix64;

/// A stream of random numbers, chosen by a seed and a name.
#[derive(Clone, Debug)]
pub(crate) struct NamedRandom(SplitMix64);

impl NamedRandom {
    /// Creates the stream of a seed and a name.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(SplitMix64::new(
            name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix),
        ))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.unit() * (high - low)
    }

    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// Returns a normally distributed number.
    pub(crate) fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.unit(), self.unit());
        (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
    }

    pub(crate) fn normals(&mut self) -> [f64; 3] {
        [self.normal(), self.normal(), self.normal()]
    }

    /// Returns a point on the unit sphere.
    pub(crate) fn direction(&mut self) -> [f64; 3] {
        unit(self.normals())
    }
}

pub(crate) fn unit(v: [f64; 3]) -> [f64; 3] {
    let length = v.iter().map(|c| c * c).sum::<f64>().sqrt().max(1e-12);
    v.map(|c| c / length)
}
