//! Reads a file in batches, and prints the number of vertices and the seconds that reading took:
//! `read FILE`. The benchmark of files compares it with other readers.

use std::{error::Error, path::PathBuf, time::Instant};

use zvf_files::FileReadOptions;

/// Number of vertices of a batch.
const BATCH: usize = 1 << 18;

#[expect(clippy::print_stdout, reason = "an example prints its result")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("read FILE")?;
    let start = Instant::now();
    let mut reader = zvf_files::open(&path, &FileReadOptions::default())?;
    let mut vertices = 0_usize;
    while let Some(batch) = reader.next(BATCH).map_err(|error| error.to_string())? {
        vertices = vertices.saturating_add(batch.vertices());
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{{\"vertices\": {vertices}, \"seconds\": {seconds}}}");
    Ok(())
}
