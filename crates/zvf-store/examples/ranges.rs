//! Reads byte ranges of objects and prints the number of requests: nearby ranges share a request.
//!
//! ```text
//! cargo run --package zvf-store --example ranges -- tracts.zv zarr.json 0/zarr.json
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, error::Error};

use zvf_model::key::Key;
use zvf_store::{Read, Store};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let address = words
        .next()
        .ok_or("give the address of a store, and keys")?;
    let store = Store::open(&address)?;
    let mut reads = Vec::new();
    for key in words {
        let key = Key::parse(&key)?;
        reads.push(Read::bounded(key.clone(), 0..16));
        reads.push(Read::bounded(key, 16..64));
    }
    for (read, found) in reads.iter().zip(store.read(&reads).await?) {
        match found {
            None => println!("{read:?}: not there"),
            Some(bytes) => println!("{read:?}: {} bytes", bytes.len()),
        }
    }
    let activity = store.activity();
    println!(
        "{} requests, {} bytes",
        activity.requests, activity.bytes_read
    );
    Ok(())
}
