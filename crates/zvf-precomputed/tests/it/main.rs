//! Tests of the precomputed formats.

mod annotations;
#[cfg(feature = "draco")]
mod draco;
mod golden;
mod hostile;
mod identifiers;
mod meshes;
mod multilod;
mod sampler;
mod segments;
mod shards;
mod skeletons;
mod values;

/// Bytes from hexadecimal digits.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2);
    pairs
        .filter_map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok())
        .collect()
}

/// Every shorter text of the bytes fails.
#[track_caller]
fn rejects_prefixes<T, E>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T, E>) {
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "prefix of {end} bytes");
    }
}
