//! Paths in a box of a store, wherever it is. For a bucket:
//!
//! ```text
//! cargo run --package zvf --features aws --example bbox -- s3://bucket/tracts.zv 0,0,0,10,10,10
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, error::Error};

use zvf::{Bbox, Dataset, OpenOptions, Query};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [address, bbox] = &words[..] else {
        return Err("give an address and a box, as 0,0,0,10,10,10".into());
    };
    let public = OpenOptions::default().anonymous(env::var_os("AWS_ACCESS_KEY_ID").is_none());
    let dataset = Dataset::open_with(address, &public).await?;
    let query = Query::new().region(Bbox::parse(bbox)?);
    let plan = dataset.explain(&query).await?;
    println!("first {} requests, then {:?}", plan.requests(), plan.then);
    let result = dataset.query(&query).await?;
    println!(
        "{} vertices of {} objects",
        result.positions.len(),
        result.objects.len()
    );
    let activity = dataset.store().activity();
    println!(
        "{} requests, {} bytes",
        activity.requests, activity.bytes_read
    );
    Ok(())
}
