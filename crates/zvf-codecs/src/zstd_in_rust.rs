//! The zstd decoder of builds without the C library.

use bytes::Bytes;
use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

use crate::error::{DecodeError, damaged};

const CODEC: &str = "zstd";
/// Maximum number of bytes that a block of four bytes decodes to.
const MAX_BLOCK_BYTES: u64 = 128 << 10;
/// Window of the highest level that encoders use without a request for more memory. Frames of
/// unknown size have such a window even if they decode to less.
const WINDOW_BYTES: u64 = 8 << 20;
/// Place and bit of the flag in a frame that its window is its declared size.
const SINGLE_SEGMENT: (usize, u8) = (4, 1 << 5);

/// Decodes all frames, within `limit` bytes. The window of a frame takes at most as much, or 8 MiB.
pub(crate) fn decode(bytes: &Bytes, limit: u64) -> Result<Bytes, DecodeError> {
    let fail = |source: FrameDecoderError| damaged(CODEC, source.into());
    let over_limit = DecodeError::OverLimit { limit };
    let mut input: &[u8] = bytes;
    if input.is_empty() {
        return Err(damaged(CODEC, "not a frame".into()));
    }
    let mut decoded = Vec::new();
    while !input.is_empty() {
        let (at, flag) = SINGLE_SEGMENT;
        let is_declared = input.get(at).is_some_and(|flags| flags & flag != 0);
        let encoded = u64::try_from(input.len()).unwrap_or(u64::MAX);
        let possible = encoded.saturating_mul(MAX_BLOCK_BYTES / 4);
        let impossible = |declared: u64| {
            (declared > possible).then(|| {
                let what = "the declared size is impossible for a frame of this length";
                damaged(CODEC, what.into())
            })
        };
        // A new decoder reserves no memory for the window of a frame.
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(limit.max(WINDOW_BYTES));
        match decoder.init(&mut input) {
            Ok(()) => {}
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let rest = usize::try_from(length).ok().and_then(|at| input.get(at..));
                input = rest.ok_or_else(|| fail(FrameDecoderError::FailedToSkipFrame))?;
                continue;
            }
            Err(FrameDecoderError::WindowSizeTooBig { requested, .. }) => {
                let damage = is_declared.then(|| impossible(requested)).flatten();
                return Err(damage.unwrap_or(over_limit));
            }
            Err(error) => return Err(fail(error)),
        }
        let declared = decoder.content_size();
        if let Some(damage) = impossible(declared) {
            return Err(damage);
        }
        if declared > limit {
            return Err(over_limit);
        }
        let before = decoded.len();
        while !decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            decoder.decode_blocks(&mut input, one).map_err(fail)?;
            let length = decoded.len().saturating_add(decoder.can_collect());
            if u64::try_from(length).unwrap_or(u64::MAX) > limit {
                return Err(over_limit);
            }
            let collected = decoder.collect_to_writer(&mut decoded);
            collected.map_err(|source| damaged(CODEC, source.into()))?;
        }
        let size = u64::try_from(decoded.len().saturating_sub(before));
        if declared > 0 && size != Ok(declared) {
            return Err(damaged(
                CODEC,
                "the frame has another size than declared".into(),
            ));
        }
        let checksums = decoder.get_checksum_from_data();
        if let Some((stored, computed)) = checksums.zip(decoder.get_calculated_checksum())
            && stored != computed
        {
            return Err(DecodeError::Checksum { stored, computed });
        }
    }
    Ok(decoded.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(len: usize) -> Vec<u8> {
        let numbers = (0_u32..).map(|at| at.wrapping_mul(at) >> 3);
        numbers.flat_map(u32::to_le_bytes).take(len).collect()
    }

    fn decoded(bytes: &[u8], limit: u64) -> Result<Bytes, DecodeError> {
        decode(&Bytes::copy_from_slice(bytes), limit)
    }

    #[test]
    fn frames_of_the_c_library_are_decoded() {
        for len in [0, 1, 100, 70_000, 300_000] {
            let bytes = numbered(len);
            let limit = u64::try_from(len).unwrap();
            for level in [1, 3, 19] {
                let frame = zstd::bulk::compress(&bytes, level).unwrap();
                assert_eq!(decoded(&frame, limit).unwrap(), bytes, "{len} {level}");
                // Without a declared size.
                let stream = zstd::stream::encode_all(&*bytes, level).unwrap();
                assert_eq!(decoded(&stream, limit).unwrap(), bytes, "{len} {level}");
                let mut both = frame.clone();
                both.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
                both.extend(&stream);
                let twice = decoded(&both, limit.saturating_mul(2)).unwrap();
                assert_eq!(twice, [&*bytes, &*bytes].concat(), "{len} {level}");
                if len > 0 {
                    for encoded in [&frame, &stream, &both] {
                        let error = decoded(encoded, limit.saturating_sub(1)).unwrap_err();
                        assert!(matches!(error, DecodeError::OverLimit { .. }), "{error:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_prefix_and_each_changed_checksum_is_rejected() {
        let bytes = numbered(5000);
        let mut encoder = zstd::bulk::Compressor::new(3).unwrap();
        encoder.include_checksum(true).unwrap();
        let frame = encoder.compress(&bytes).unwrap();
        assert_eq!(decoded(&frame, 5000).unwrap(), bytes);
        for end in 0..frame.len() {
            assert!(decoded(&frame[..end], 5000).is_err(), "{end}");
        }
        let mut changed = frame;
        *changed.last_mut().unwrap() ^= 1;
        let error = decoded(&changed, 5000).unwrap_err();
        assert!(matches!(error, DecodeError::Checksum { .. }), "{error:?}");
    }

    #[test]
    fn damage_is_rejected_or_decodes_within_the_limit() {
        let frame = zstd::bulk::compress(&numbered(600), 3).unwrap();
        for at in 0..frame.len() {
            for bit in 0..8 {
                let mut changed = frame.clone();
                changed[at] ^= 1_u8.rotate_left(bit);
                if let Ok(bytes) = decoded(&changed, 4000) {
                    assert!(bytes.len() <= 4000);
                }
            }
        }
    }

    #[test]
    fn a_window_above_the_limit_is_rejected_before_it_is_reserved() {
        // A frame of unknown size whose window has 2^30 bytes, with an empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
        let error = decoded(&frame, 1000).unwrap_err();
        assert!(matches!(error, DecodeError::OverLimit { .. }), "{error:?}");
        // A frame that declares 2^62 bytes.
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
        frame.extend((1_u64 << 62).to_le_bytes());
        frame.extend([1, 0, 0]);
        let error = decoded(&frame, 1000).unwrap_err();
        assert!(matches!(error, DecodeError::Damaged { .. }), "{error:?}");
    }
}
