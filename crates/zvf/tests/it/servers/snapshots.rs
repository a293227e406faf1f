//! Random readers beside a random writer, as in memory and on a disk.

use super::{Place as Server, report};
use crate::snapshots::random::check;

#[test]
#[ignore = "needs servers: cargo xtask servers"]
fn readers_of_a_server_see_committed_states_only() {
    for (seed, is_sealed) in [(31, false), (32, true)] {
        let address = Server::S3.address("stores", &format!("snapshots-{seed}.zv"));
        let answered = check(seed, &address.into(), is_sealed);
        report(format_args!(
            "S3: {answered} queries beside a writer, sealed {is_sealed}: each of one transaction"
        ));
    }
}
