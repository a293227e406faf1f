//! Builder for test bytes.

/// Little-endian bytes, built left to right.
///
/// ```
/// use zvf_testkit::LeBytes;
///
/// let bytes = LeBytes::new().raw(b"GFVZ").u16(1).i64s([-1]).done();
/// assert_eq!(bytes.len(), 14);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct LeBytes(Vec<u8>);

impl LeBytes {
    /// Creates an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends one byte.
    pub fn u8(self, value: u8) -> Self {
        self.raw(&[value])
    }

    /// Appends a number of two bytes.
    pub fn u16(self, value: u16) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends a number of four bytes.
    pub fn u32(self, value: u32) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends numbers of four bytes each.
    pub fn u32s<const N: usize>(self, values: [u32; N]) -> Self {
        values.into_iter().fold(self, Self::u32)
    }

    /// Appends a number of eight bytes.
    pub fn u64(self, value: u64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends numbers of eight bytes each.
    pub fn u64s<const N: usize>(self, values: [u64; N]) -> Self {
        values.into_iter().fold(self, Self::u64)
    }

    /// Appends a signed number of eight bytes.
    pub fn i64(self, value: i64) -> Self {
        self.raw(&value.to_le_bytes())
    }

    /// Appends signed numbers of eight bytes each.
    pub fn i64s<const N: usize>(self, values: [i64; N]) -> Self {
        values.into_iter().fold(self, Self::i64)
    }

    /// Appends numbers of four bytes each.
    pub fn f32s<const N: usize>(self, values: [f32; N]) -> Self {
        let bytes = values.into_iter().flat_map(f32::to_le_bytes);
        self.raw(&bytes.collect::<Vec<_>>())
    }

    /// Returns the bytes.
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}
