//! All decoder walks behind one C function: the smallest program that contains the decoders.
#![no_std]

use zvf_testkit::walk;

#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Runs walk number `which` over `len` bytes at `start`. Returns 0 if the bytes are rejected or the
/// walk does not exist.
///
/// # Safety
///
/// `start` must point to `len` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zvf_walk(which: usize, start: *const u8, len: usize) -> u64 {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { core::slice::from_raw_parts(start, len) };
    let walk = walk::ALL.get(which);
    walk.and_then(|(_, walk)| walk(bytes)).unwrap_or(0)
}

/// Panics on fewer than eight bytes, so that the probe has a panic to find.
///
/// # Safety
///
/// `start` must point to `len` readable bytes.
#[cfg(feature = "control")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zvf_control(start: *const u8, len: usize) -> u8 {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { core::slice::from_raw_parts(start, len) };
    bytes[7]
}
