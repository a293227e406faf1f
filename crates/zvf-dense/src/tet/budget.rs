//! The memory budget of reads, resolved from options of the caller and of the file.

/// Budget if the memory of the host is unknown.
const FALLBACK: u64 = 256 << 20;
/// A quarter of the memory of the host, in basis points.
const DEFAULT_BPS: u16 = 2500;
const WHOLE_BPS: u64 = 10_000;

/// A limit on the memory of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Limit in bytes. Takes precedence over everything else.
    pub bytes: Option<u64>,
    /// Limit as a share of the memory of the host, in basis points. A limit in bytes in the file
    /// takes precedence.
    pub bps: Option<u16>,
}

impl MemoryBudget {
    /// Returns the limit in bytes, given the limits in the file (0 if unset) and the memory of the
    /// host. The order of precedence is that of the reference implementation: bytes from the
    /// caller, bytes from the file, share from the caller, share from the file, a quarter.
    pub fn resolve(self, file_bytes: u32, file_bps: u16, host: Option<u64>) -> u64 {
        if let Some(bytes) = self.bytes {
            return bytes;
        }
        if file_bytes > 0 {
            return file_bytes.into();
        }
        let of_file = Some(file_bps).filter(|bps| *bps > 0);
        let bps = self.bps.or(of_file).unwrap_or(DEFAULT_BPS);
        // The reference implementation accepts shares above 100 %. A limit caps them.
        let bps = u64::from(bps).min(WHOLE_BPS);
        host.map_or(FALLBACK, |host| (host / WHOLE_BPS).saturating_mul(bps))
    }
}

/// Returns the available memory of the host in bytes; `None` if it is unknown.
pub fn available_memory() -> Option<u64> {
    parse(&meminfo()?, "MemAvailable:")
}

/// Returns the memory of the host in bytes, used or not; `None` if it is unknown.
pub(super) fn host_memory() -> Option<u64> {
    parse(&meminfo()?, "MemTotal:")
}

fn meminfo() -> Option<String> {
    std::fs::read_to_string("/proc/meminfo").ok()
}

fn parse(meminfo: &str, field: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(field))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_precede_shares_and_callers_precede_files() {
        let none = MemoryBudget::default();
        let bytes = MemoryBudget {
            bytes: Some(7),
            bps: Some(1),
        };
        let share = MemoryBudget {
            bytes: None,
            bps: Some(5000),
        };
        let free = Some(1_000_000);
        assert_eq!(bytes.resolve(9, 100, free), 7);
        assert_eq!(share.resolve(9, 100, free), 9);
        assert_eq!(share.resolve(0, 100, free), 500_000);
        assert_eq!(none.resolve(0, 100, free), 10_000);
        assert_eq!(none.resolve(0, 0, free), 250_000);
        assert_eq!(none.resolve(0, 65_535, free), 1_000_000);
        assert_eq!(none.resolve(0, 100, None), FALLBACK);
    }

    #[test]
    fn memory_is_parsed_from_proc_meminfo() {
        let text = "MemTotal:  8 kB\nMemAvailable:   24 kB\nBuffers: 1 kB\n";
        assert_eq!(parse(text, "MemAvailable:"), Some(24 * 1024));
        assert_eq!(parse(text, "MemTotal:"), Some(8 * 1024));
        assert_eq!(parse("MemFree: 3 kB", "MemTotal:"), None);
    }
}
