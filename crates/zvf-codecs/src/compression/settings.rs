//! Encoder settings in codec configurations.

use std::error::Error;

use zvf_model::zarr::Codec;

use crate::error::EncodeError;

/// The settings of an encoder, or the configuration field that the encoder does not support.
///
/// Decoding needs no settings, so a chunk is readable even when its codec cannot encode.
pub(crate) type Settings<T> = Result<T, &'static str>;

/// Returns an integer field of a configuration.
pub(super) fn integer(codec: &Codec, field: &'static str) -> Settings<Option<i64>> {
    match codec.setting(field) {
        None => Ok(None),
        Some(number) => number.as_i64().map(Some).ok_or(field),
    }
}

/// Returns the settings for encoding, or the error of the unsupported field.
pub(super) fn for_encoding<T>(
    codec: &'static str,
    settings: Settings<T>,
) -> Result<T, EncodeError> {
    settings.map_err(|field| EncodeError::Configuration { codec, field })
}

/// Returns the error of a failed encoder.
pub(super) fn failed(codec: &'static str, source: Box<dyn Error + Send + Sync>) -> EncodeError {
    EncodeError::Codec {
        codec,
        source: source.into(),
    }
}
