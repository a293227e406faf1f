//! How much memory a read may take: what the caller says and what the file says.

/// Where the host's memory cannot be found out.
const FALLBACK: u64 = 256 << 20;
/// A quarter of the host's memory, in basis points.
const DEFAULT_BPS: u16 = 2500;
const WHOLE_BPS: u64 = 10_000;

/// How much memory a read may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes; beats all else.
    pub bytes: Option<u64>,
    /// Share of the memory that is free, in basis points; beaten by bytes that the file asks for.
    pub bps: Option<u16>,
}

impl MemoryBudget {
    /// Bytes there may be, given what the file says (0 for nothing) and the
    /// memory that is free. In the order of the reference: bytes of the caller,
    /// bytes of the file, share of the caller, share of the file, a quarter.
    pub fn resolve(self, file_bytes: u32, file_bps: u16, available: Option<u64>) -> u64 {
        if let Some(bytes) = self.bytes {
            return bytes;
        }
        if file_bytes > 0 {
            return file_bytes.into();
        }
        let of_file = Some(file_bps).filter(|bps| *bps > 0);
        let bps = self.bps.or(of_file).unwrap_or(DEFAULT_BPS);
        // The reference takes more than the whole, too; a budget cannot be.
        let bps = u64::from(bps).min(WHOLE_BPS);
        available.map_or(FALLBACK, |available| {
            (available / WHOLE_BPS).saturating_mul(bps)
        })
    }
}

/// Memory that is free, where it can be found out.
pub fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    parse(&text)
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib = line.trim().strip_suffix("kB")?.trim_end();
    kib.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beat_shares_and_callers_beat_files() {
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
    fn free_memory_is_found_in_the_text_of_linux() {
        let text = "MemTotal:  8 kB\nMemAvailable:   24 kB\nBuffers: 1 kB\n";
        assert_eq!(parse(text), Some(24 * 1024));
        assert_eq!(parse("MemFree: 3 kB"), None);
    }
}
