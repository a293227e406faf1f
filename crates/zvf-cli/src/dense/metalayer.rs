//! Metalayers given as `NAME=VALUE`.

use zvf_dense::b2nd;

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetalayerValue {
    pub(crate) name: String,
    /// The value as MessagePack.
    pub(crate) body: Vec<u8>,
}

/// Parses `NAME=VALUE`. A value that is not JSON is text.
pub(crate) fn parse(text: &str) -> Result<MetalayerValue, String> {
    let split = text.split_once('=');
    let (name, value) = split
        .filter(|(name, _)| (1..=31).contains(&name.len()))
        .ok_or("write NAME=VALUE, with a name of 1 to 31 bytes, as unit=mm")?;
    let packed = b2nd::pack(&serde_json::from_str(value).unwrap_or_else(|_| value.into()));
    Ok(MetalayerValue {
        name: name.to_owned(),
        body: packed.ok_or("the value is too long")?,
    })
}
