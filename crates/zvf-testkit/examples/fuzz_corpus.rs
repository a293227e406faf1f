//! Writes first inputs for the fuzz targets: `fuzz_corpus FOLDER`.
//!
//! A target's seeds are the blobs of `testdata/codec/<target>.json` and every
//! small file of a golden archive that its walk accepts.

use std::{error::Error, fs, path::Path};

use serde_json::Value;
use zvf_testkit::{
    golden::{self, Golden},
    walk,
};

const LONGEST: usize = 4096;
const MOST: usize = 100;
const ARCHIVES: [&str; 6] = ["zvf-09", "zvf-08", "zvf-07", "zvf-06", "tet", "b2nd"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("fuzz_corpus FOLDER")?;
    let archives = ARCHIVES.map(Golden::open);
    for (name, walk) in walk::ALL {
        let mut seeds = fixtures(name)?;
        let files = archives.iter().flat_map(Golden::files);
        let accepted = files.filter(|(_, bytes)| walk(bytes).is_some());
        seeds.extend(accepted.map(|(_, bytes)| bytes.to_vec()));
        seeds.retain(|seed| seed.len() <= LONGEST);
        seeds.sort();
        seeds.dedup();
        let target = Path::new(&folder).join(name);
        fs::create_dir_all(&target)?;
        // Spread over the sorted list, so that the first bytes vary.
        let step = seeds.len().div_ceil(MOST).max(1);
        for (number, seed) in seeds.iter().step_by(step).enumerate() {
            fs::write(target.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}

/// The blobs of the codec's fixtures; none when it has no such file.
fn fixtures(name: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let path = golden::testdata().join(format!("codec/{name}.json"));
    let Ok(text) = fs::read_to_string(path) else {
        return Ok(Vec::new());
    };
    let fixtures: Value = serde_json::from_str(&text)?;
    let cases = fixtures["cases"].as_array();
    let blobs = cases.into_iter().flatten().map(|case| case["hex"].as_str());
    Ok(blobs.flatten().map(golden::unhex).collect())
}
