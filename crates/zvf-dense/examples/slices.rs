//! Reads a box of a `.tet` or `.b2nd` file and prints its cost and its first bytes.
//!
//! ```text
//! cargo run --package zvf-dense --example slices -- volume.b2nd 0,0,0 2,2,2
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, error::Error, path::Path, sync::Arc};

use zvf_dense::{
    DenseArray, Hyperslab, MappedFile,
    b2nd::B2nd,
    tet::{TetFile, TetOptions},
};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, starts, stops] = &words[..] else {
        return Err("give a file and two corners, as 0,0,0 2,2,2".into());
    };
    let file = Path::new(file);
    let array: Box<dyn DenseArray> = match file.extension().and_then(|end| end.to_str()) {
        Some("tet") => {
            let opened = TetFile::open(Arc::new(MappedFile::open(file)?), TetOptions::default())?;
            Box::new(opened.dataset_at(0).ok_or("no dataset is in it")?)
        }
        _ => Box::new(B2nd::open(file)?),
    };
    let selection = Hyperslab::new(&corner(starts)?, &corner(stops)?, None)?;
    println!("{} of shape {:?}", array.dtype(), array.shape());
    println!("{:?}", array.read_plan(&selection)?);
    let values = array.slice(&selection)?;
    println!(
        "{} bytes: {:02x?}",
        values.len(),
        &values[..values.len().min(16)]
    );
    Ok(())
}

fn corner(text: &str) -> Result<Vec<u64>, std::num::ParseIntError> {
    text.split(',').map(str::parse).collect()
}
