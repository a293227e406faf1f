//! Large pages for large results.
//!
//! Memory comes from the system a page at a time, when it is first written: for
//! 4 KiB that takes about as long as writing them. Where the system has pages of
//! 2 MiB and gives them to who asks, as Linux does, one is given for 512 of those.
//!
//! ```
//! let mut bytes: Vec<u8> = Vec::new();
//! bytes.reserve_exact(64 << 20);
//! zvf_pages::prefer_large(&mut bytes);
//! bytes.extend([1, 2, 3]);
//! assert_eq!(bytes, [1, 2, 3]);
//! ```

/// Bytes of a large page, as most processors have them.
const PAGE: usize = 2 << 20;

/// Asks for large pages for what this allocated and nobody has written yet.
///
/// What is in it stays as it is, and it is no error where the system has none. Less
/// than a few of them are not asked for.
pub fn prefer_large<T>(memory: &mut Vec<T>) {
    let size = memory.capacity().saturating_mul(size_of::<T>());
    if size < 2 * PAGE {
        return;
    }
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.align_offset(PAGE);
    let pages = size.saturating_sub(before) / PAGE;
    if pages > 0 {
        advise(start.wrapping_add(before), pages * PAGE);
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no other way to advise the system")]
fn advise(start: *mut u8, size: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the one caller gives a part of what its vector allocated, which it has borrowed
    // alone. This advice changes no byte and takes no page away: it says how large those are to
    // be that come, be it of memory that is then given back and used by others.
    let advised = unsafe { madvise(start.cast(), size, Advice::LinuxHugepage) };
    // A system without them gives small ones, which do as well.
    advised.ok();
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
