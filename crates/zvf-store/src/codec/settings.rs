//! What the encoders of codecs are told by their configuration.

use zvf_model::zarr::Codec;

/// The settings of an encoder, or the field of the configuration that it cannot
/// follow. Undoing a codec needs none, so a chunk is read all the same.
pub(crate) type Settings<T> = Result<T, &'static str>;

/// zstd: level 0 is the library's own choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zstd {
    pub(crate) level: i32,
    pub(crate) checksum: bool,
}

impl Zstd {
    pub(crate) fn of(codec: &Codec) -> Settings<Self> {
        let level = number(codec, "level")?.unwrap_or(0);
        let level = i32::try_from(level).map_err(|_| "level")?;
        let checksum = match codec.configuration.get("checksum") {
            None => false,
            Some(checksum) => checksum.as_bool().ok_or("checksum")?,
        };
        Ok(Self { level, checksum })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gzip {
    pub(crate) level: u32,
}

impl Gzip {
    pub(crate) fn of(codec: &Codec) -> Settings<Self> {
        let level = number(codec, "level")?.unwrap_or(5);
        let level = u32::try_from(level).ok().filter(|level| *level <= 9);
        level.map(|level| Self { level }).ok_or("level")
    }
}

#[cfg(feature = "blosc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blosc {
    pub(crate) compressor: zarrs::array::codec::BloscCompressor,
    pub(crate) level: u8,
    pub(crate) shuffle: zarrs::array::codec::BloscShuffleMode,
    pub(crate) typesize: usize,
    pub(crate) blocksize: usize,
}

#[cfg(feature = "blosc")]
impl Blosc {
    pub(crate) fn of(codec: &Codec) -> Settings<Self> {
        let text = |field: &'static str, or: &'static str| match codec.configuration.get(field) {
            None => Ok(or),
            Some(text) => text.as_str().ok_or(field),
        };
        let size = |field: &'static str, or: usize| match number(codec, field)? {
            None => Ok(or),
            Some(size) => usize::try_from(size).map_err(|_| field),
        };
        let level = number(codec, "clevel")?.unwrap_or(5);
        let level = u8::try_from(level).ok().filter(|level| *level <= 9);
        Ok(Self {
            compressor: super::blosc::compressor(text("cname", "zstd")?).ok_or("cname")?,
            level: level.ok_or("clevel")?,
            shuffle: super::blosc::shuffle(text("shuffle", "noshuffle")?).ok_or("shuffle")?,
            // The library stores it in a byte, and takes more for 1.
            typesize: match size("typesize", 1)? {
                typesize @ 1..=255 => typesize,
                _ => return Err("typesize"),
            },
            blocksize: size("blocksize", 0)?,
        })
    }
}

fn number(codec: &Codec, field: &'static str) -> Settings<Option<i64>> {
    match codec.configuration.get(field) {
        None => Ok(None),
        Some(number) => number.as_i64().map(Some).ok_or(field),
    }
}
