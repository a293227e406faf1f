//! Frame and array metalayer.

use zvf_format::b2nd::{
    Blosc2Frame, FrameHeader, Metalayers, NdExtents, NdForm, NdMetalayer, Trailer, TrailerTail,
};

use super::{mix, mix_bytes};

/// Walks an array metalayer of either form: every list and the geometry.
pub fn nd_metalayer(bytes: &[u8]) -> Option<u64> {
    let b2nd = NdMetalayer::parse(NdForm::B2nd, bytes).ok();
    let caterva = || NdMetalayer::parse(NdForm::Caterva, bytes).ok();
    let array = b2nd.or_else(caterva)?;
    Some(mix_array(0, &array))
}

fn mix_array(digest: u64, array: &NdMetalayer<'_>) -> u64 {
    let mut digest = mix_bytes(digest, array.form().name().as_bytes());
    digest = mix(digest, u64::from(array.form().max_rank()));
    digest = array.shape().iter().fold(digest, mix);
    let mix_extents = |digest, list: NdExtents<'_>| list.iter().map(u64::from).fold(digest, mix);
    digest = mix_extents(digest, array.chunk_shape());
    digest = mix_extents(digest, array.block_shape());
    digest = mix_bytes(digest, array.dtype().unwrap_or_default().as_bytes());
    digest = mix(digest, u64::from(array.dtype_format().unwrap_or(u8::MAX)));
    digest = array.grid().chain(array.block_grid()).fold(digest, mix);
    digest = mix(digest, array.chunk_count().unwrap_or(0));
    digest = mix(digest, array.block_count().unwrap_or(0));
    for typesize in [1, 8, u32::MAX] {
        digest = mix(digest, array.block_len(typesize).unwrap_or(0));
        digest = mix(digest, array.chunk_len(typesize).unwrap_or(0));
    }
    for axis in 0..=array.rank() {
        digest = mix(digest, array.shape().get(axis).unwrap_or(0));
        let chunk = array.chunk_shape().get(axis);
        let block = array.block_shape().get(axis);
        digest = mix(digest, u64::from(chunk.unwrap_or(0)));
        digest = mix(digest, u64::from(block.unwrap_or(0)));
    }
    digest
}

/// Walks a frame: fixed header, metalayers, parts, trailer, array.
pub fn b2nd_frame(bytes: &[u8]) -> Option<u64> {
    let frame = Blosc2Frame::parse(bytes).ok()?;
    let mut digest = mix_header(0, frame.header());
    digest = mix_metalayers(digest, &frame.metalayers());
    digest = mix_metalayers(digest, &frame.trailer().metalayers());
    digest = mix_bytes(digest, frame.chunks());
    digest = mix_bytes(digest, frame.index_chunk());
    digest = mix_bytes(digest, frame.metalayer("b2nd").unwrap_or_default());
    let array = frame.nd().ok().flatten();
    Some(array.map_or(digest, |array| mix_array(digest, &array)))
}

/// Walks the parts of a frame that a remote reader parses one by one, each on its own from the
/// start or the end of the bytes.
pub fn b2nd_parts(bytes: &[u8]) -> Option<u64> {
    let header = FrameHeader::parse(bytes).ok();
    let head = header.map_or(0, |header| mix_header(0, header));
    let metalayers = Metalayers::parse(bytes).ok();
    let names = metalayers.map_or(0, |metalayers| mix_metalayers(0, &metalayers));
    let tail = TrailerTail::parse(bytes).ok();
    let len = tail.map_or(0, |tail| u64::from(tail.trailer_len()));
    let trailer = Trailer::parse(bytes).ok();
    let last = trailer.map_or(0, |trailer| mix_metalayers(0, &trailer.metalayers()));
    let digest = [head, names, len, last].into_iter().fold(0, mix);
    let any = header.is_some() || metalayers.is_some() || tail.is_some();
    any.then_some(digest)
}

fn mix_header(digest: u64, header: FrameHeader<'_>) -> u64 {
    let bytes = [
        header.version(),
        u8::from(header.has_variable_chunks()),
        header.frame_type().number(),
        header.codec(),
        header.level(),
        header.split_mode(),
        header.user_codec(),
        header.codec_meta(),
        u8::from(header.uses_dictionary()),
        u8::from(header.has_vlmetalayers()),
    ];
    let mut digest = mix_bytes(digest, &bytes);
    digest = mix_bytes(digest, header.filters());
    digest = mix_bytes(digest, header.filter_metas());
    digest = mix_bytes(digest, &header.compression_threads().to_le_bytes());
    digest = mix_bytes(digest, &header.decompression_threads().to_le_bytes());
    let lengths = [
        u64::from(header.header_len()),
        header.frame_len(),
        header.nbytes(),
        header.cbytes(),
        u64::from(header.typesize()),
        u64::from(header.blocksize()),
        u64::from(header.chunksize()),
        header.chunk_count(),
        header.chunks_span().start,
        header.chunks_span().end,
    ];
    lengths.into_iter().fold(digest, mix)
}

fn mix_metalayers(digest: u64, metalayers: &Metalayers<'_>) -> u64 {
    let mut digest = mix(digest, u64::try_from(metalayers.len()).unwrap_or(0));
    for metalayer in metalayers {
        digest = mix_bytes(digest, metalayer.name.as_bytes());
        digest = mix_bytes(digest, metalayer.body);
    }
    mix_bytes(digest, metalayers.get("b2nd").unwrap_or_default())
}
