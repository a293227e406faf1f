//! The cost of requests to each kind of store.

use crate::io::{GapPolicy, MergeLimits, MergePolicy};

/// Limits on merging and on concurrent requests for a kind of store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendProfile {
    pub(crate) merge: MergePolicy,
    /// Maximum number of requests in flight.
    pub(crate) concurrency: usize,
    /// A request is a round trip over the network.
    pub(crate) is_remote: bool,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl BackendProfile {
    /// A request is a lookup.
    pub(crate) const MEMORY: Self = Self {
        merge: MergePolicy {
            limits: MergeLimits {
                gap: 8 * KIB,
                size: 4 * MIB,
            },
            gaps: None,
        },
        concurrency: 1,
        is_remote: false,
    };
    /// A request opens and reads a file, which takes about 5 µs.
    #[cfg(any(feature = "local", feature = "zip"))]
    pub(crate) const FILES: Self = Self {
        merge: MergePolicy {
            limits: MergeLimits {
                gap: 16 * KIB,
                size: 4 * MIB,
            },
            gaps: None,
        },
        concurrency: 16,
        is_remote: false,
    };
    /// A request takes 20 to 100 ms, in which a connection transfers 1 to 10 MB. A gap of a
    /// megabyte would be worth a request if requests did not run concurrently; so gaps that cost
    /// more than a millisecond are read only once half of the concurrent requests are in use, and
    /// longer ranges than a connection transfers in a round trip are read over several of them.
    pub(crate) const NETWORK: Self = Self {
        merge: MergePolicy {
            limits: MergeLimits {
                gap: MIB,
                size: 4 * MIB,
            },
            gaps: Some(GapPolicy {
                free_gap: 64 * KIB,
                max_requests: 32,
            }),
        },
        concurrency: 64,
        is_remote: true,
    };
}
