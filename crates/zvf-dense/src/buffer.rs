//! Memory for results, in large pages.

use core::{
    fmt,
    ops::{Deref, DerefMut},
};

use memmap2::MmapMut;

/// Size in bytes from which large pages are requested.
const LARGE: usize = 4 << 20;

/// The bytes of a result.
///
/// Long results use large pages if the system provides them. With 4 KiB pages, page faults take
/// about as long as reading the data.
pub struct Buffer(Memory);

enum Memory {
    Heap(Vec<u8>),
    Pages(MmapMut),
}

impl Buffer {
    /// Allocates zeroed memory without touching it; `None` if the allocation fails.
    pub fn zeros(len: usize) -> Option<Self> {
        if let Some(pages) = pages(len) {
            return Some(Self(Memory::Pages(pages)));
        }
        Vec::<u8>::new().try_reserve_exact(len).ok()?;
        Some(Self(Memory::Heap(vec![0; len])))
    }
}

#[cfg(target_os = "linux")]
fn pages(len: usize) -> Option<MmapMut> {
    if len < LARGE {
        return None;
    }
    let pages = MmapMut::map_anon(len).ok()?;
    // Small pages work as well, only slower.
    pages.advise(memmap2::Advice::HugePage).ok();
    Some(pages)
}

#[cfg(not(target_os = "linux"))]
fn pages(_: usize) -> Option<MmapMut> {
    None
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Pages(pages) => pages,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Pages(pages) => pages,
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Memory::Heap(bytes))
    }
}

impl From<Buffer> for Vec<u8> {
    /// Copies buffers in large pages, and moves others.
    fn from(buffer: Buffer) -> Self {
        match buffer.0 {
            Memory::Heap(bytes) => bytes,
            Memory::Pages(pages) => pages.to_vec(),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Buffer {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}
