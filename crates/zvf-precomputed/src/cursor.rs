//! A position in bytes from which fields are taken.

use crate::PrecomputedError;

/// The bytes that are not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(
        &mut self,
        size: usize,
        part: &'static str,
    ) -> Result<&'a [u8], PrecomputedError> {
        let (taken, rest) = self
            .0
            .split_at_checked(size)
            .ok_or(PrecomputedError::Truncated(part))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes `count` elements of `size` bytes.
    pub(crate) fn elements(
        &mut self,
        count: usize,
        size: usize,
        part: &'static str,
    ) -> Result<&'a [u8], PrecomputedError> {
        let bytes = count.checked_mul(size);
        self.take(bytes.ok_or(PrecomputedError::Truncated(part))?, part)
    }

    pub(crate) fn u32(&mut self, part: &'static str) -> Result<u32, PrecomputedError> {
        let bytes = self.take(4, part)?.first_chunk::<4>();
        bytes
            .map(|bytes| u32::from_le_bytes(*bytes))
            .ok_or(PrecomputedError::Truncated(part))
    }

    pub(crate) fn u64(&mut self, part: &'static str) -> Result<u64, PrecomputedError> {
        let bytes = self.take(8, part)?.first_chunk::<8>();
        bytes
            .map(|bytes| u64::from_le_bytes(*bytes))
            .ok_or(PrecomputedError::Truncated(part))
    }

    /// Takes a 32-bit count.
    pub(crate) fn count(&mut self, part: &'static str) -> Result<usize, PrecomputedError> {
        let count = self.u32(part)?;
        usize::try_from(count).map_err(|_| PrecomputedError::Count(part))
    }

    pub(crate) fn floats(
        &mut self,
        count: usize,
        part: &'static str,
    ) -> Result<Vec<f32>, PrecomputedError> {
        Ok(f32s(self.elements(count, 4, part)?).collect())
    }

    pub(crate) fn ids(
        &mut self,
        count: usize,
        part: &'static str,
    ) -> Result<Vec<u64>, PrecomputedError> {
        let bytes = self.elements(count, 8, part)?;
        let ids = bytes.as_chunks::<8>().0.iter();
        Ok(ids.map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn finish(self) -> Result<(), PrecomputedError> {
        match self.0.len() {
            0 => Ok(()),
            trailing => Err(PrecomputedError::Trailing(trailing)),
        }
    }
}

/// The floats in bytes.
pub(crate) fn f32s(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    let floats = bytes.as_chunks::<4>().0.iter();
    floats.map(|bytes| f32::from_le_bytes(*bytes))
}

/// The rows in bytes.
pub(crate) fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let rows = bytes.as_chunks::<4>().0.iter();
    rows.map(|bytes| u32::from_le_bytes(*bytes))
}
