//! Lists the files with the vertices in a box, from two `zarr.json` files alone.
//!
//! ```text
//! cargo run --package zvf-model --example chunks_of_box -- tracts.zv 0,0,0 10,10,10
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it finds")]

use std::{env, error::Error, fs, path::Path};

use zvf_model::{grid::Bounds, key::Key, root::RootMetadata, zarr::Node};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [store, lower, upper] = &words[..] else {
        return Err("give a store and two corners, as 0,0,0 10,10,10".into());
    };
    let key = Key::root().metadata()?;
    let json = fs::read(Path::new(store).join(key.as_str()))?;
    let root = RootMetadata::parse(&key, Node::parse(&key, &json)?.attributes())?;
    let bbox = Bounds::new(&corner(lower)?, &corner(upper)?)?;
    for chunk in root.chunk_shape.chunks_touching(&bbox).within(10_000)? {
        println!("chunk {chunk}");
    }
    Ok(())
}

fn corner(text: &str) -> Result<Vec<f64>, std::num::ParseFloatError> {
    text.split(',').map(str::parse).collect()
}
