//! Memory of the machine, of which the default cell cache is a share.

use std::{fs, sync::OnceLock};

/// Size of the cache where the memory is unknown, and the least elsewhere.
const MIN_CACHE_BYTES: u64 = 64 << 20;
/// The cells of ten million vertices stay in the cache. A program may have several stores open.
const MAX_CACHE_BYTES: u64 = 1 << 30;
/// The cache is one part of this many of the memory.
const CACHE_SHARE: u64 = 16;

/// Returns the default size of the cell cache in bytes.
pub(super) fn default_cache_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| cache_of(memory()))
}

/// Returns the size of the cache on a machine with this much memory.
fn cache_of(memory: Option<u64>) -> u64 {
    let share = memory.map_or(0, |bytes| bytes / CACHE_SHARE);
    share.clamp(MIN_CACHE_BYTES, MAX_CACHE_BYTES)
}

/// Returns the memory that the process may use: that of the machine, or the limit of its control
/// group, as containers have. `None` where the system does not report it.
fn memory() -> Option<u64> {
    let machine = total(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let limits = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .filter_map(|path| fs::read_to_string(path).ok());
    // A group without limit says `max`, or a number beyond any memory.
    let limits = limits.filter_map(|text| text.trim().parse().ok());
    Some(limits.fold(machine, u64::min))
}

/// Returns the total memory in `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_a_bounded_share_of_the_memory() {
        assert_eq!(cache_of(None), 64 << 20);
        assert_eq!(cache_of(Some(512 << 20)), 64 << 20);
        assert_eq!(cache_of(Some(8 << 30)), 512 << 20);
        assert_eq!(cache_of(Some(1 << 40)), 1 << 30);
    }

    #[test]
    fn memory_is_read_from_the_system() {
        let text = "MemTotal:       24684096 kB\nMemFree:        20956852 kB\n";
        assert_eq!(total(text), Some(24_684_096 * 1024));
        assert_eq!(total("MemFree: 7 kB"), None);
        assert_eq!(total("MemTotal: 18446744073709551615 kB"), None);
        if cfg!(target_os = "linux") {
            assert!(memory().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
