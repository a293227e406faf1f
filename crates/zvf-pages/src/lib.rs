//! Large pages for large results.
//!
//! The system provides memory one page at a time, when a page is first written. For a page of 4 KiB
//! that takes about as long as writing it. Systems with pages of 2 MiB that grant them on request,
//! such as Linux, provide one of these instead of 512 small ones.
//!
//! ```
//! let mut bytes: Vec<u8> = Vec::new();
//! bytes.reserve_exact(64 << 20);
//! zvf_pages::prefer_large(&mut bytes);
//! bytes.extend([1, 2, 3]);
//! assert_eq!(bytes, [1, 2, 3]);
//! ```

/// Size of a large page in bytes on most processors.
const PAGE: usize = 2 << 20;

/// Requests large pages for memory that the vector has allocated but not yet written.
///
/// The contents are unchanged. A system without large pages is not an error. Allocations smaller
/// than two large pages are ignored.
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
    // SAFETY: the only caller passes a range within the allocation of a vector that it borrows
    // exclusively. This advice neither changes bytes nor unmaps pages: it only sets the size of
    // pages mapped later, even if the memory is freed and reused by then.
    //
    // An error is ignored: without large pages the system provides small ones, which work too.
    unsafe { libc::madvise(start.cast(), size, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}
