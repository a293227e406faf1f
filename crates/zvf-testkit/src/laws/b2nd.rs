//! Frame and array metalayer.

use zvf_format::b2nd::{
    Blosc2Frame, FrameHeader, FrameSpec, Metalayers, MetalayersBuilder, NdForm, NdMetalayer,
    NdMetalayerBuilder, Trailer, TrailerTail,
};

/// Checks that lists and lookup agree, the geometry adds up, and the bytes round-trip: a metalayer
/// has one encoding.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn nd_metalayer(bytes: &[u8]) {
    for form in [NdForm::B2nd, NdForm::Caterva] {
        if let Ok(array) = NdMetalayer::parse(form, bytes) {
            assert_eq!(array.form(), form);
            array_round_trips(&array, bytes);
        }
    }
}

fn array_round_trips(array: &NdMetalayer<'_>, bytes: &[u8]) {
    let mut builder = NdMetalayerBuilder::default();
    let (mut chunks, mut blocks) = (Some(1_u64), Some(1_u64));
    for axis in 0..array.rank() {
        let shape = array.shape().get(axis).expect("an axis");
        let chunk = array.chunk_shape().get(axis).expect("an axis");
        let block = array.block_shape().get(axis).expect("an axis");
        builder
            .push_axis(shape, chunk, block)
            .expect("what was decoded can be encoded");
        let grid = array.grid().nth(axis).expect("an axis");
        assert_eq!(
            grid,
            shape.checked_div(chunk.into()).map_or(0, |whole| {
                whole + u64::from(whole * u64::from(chunk) < shape)
            })
        );
        let parts = array.block_grid().nth(axis).expect("an axis");
        assert!(parts * u64::from(block) >= u64::from(chunk) || block == 0);
        chunks = chunks.and_then(|chunks| chunks.checked_mul(grid));
        blocks = blocks.and_then(|blocks| blocks.checked_mul(parts));
    }
    assert_eq!(array.shape().get(array.rank()), None);
    assert_eq!((array.chunk_count(), array.block_count()), (chunks, blocks));
    if let (Some(block), Some(chunk)) = (array.block_len(1), array.chunk_len(1)) {
        assert_eq!(
            Some(chunk),
            blocks.and_then(|blocks| blocks.checked_mul(block))
        );
    }
    let again = match (array.dtype_format(), array.dtype()) {
        (Some(format), Some(dtype)) => builder.finish_b2nd(format, dtype),
        _ => builder.finish_caterva(),
    };
    assert_eq!(again.expect("what was decoded can be encoded"), bytes);
}

/// Checks that the parts make up the frame, parsing them one by one gives the same result, and
/// encoding header and trailer reproduces them.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn b2nd_frame(bytes: &[u8]) {
    let Ok(frame) = Blosc2Frame::parse(bytes) else {
        return;
    };
    let header = frame.header();
    let frame_len = usize::try_from(header.frame_len()).expect("fits");
    let header_len = usize::try_from(header.header_len()).expect("fits");
    let tail = TrailerTail::parse(&bytes[..frame_len]).expect("as in the frame");
    let trailer_len = usize::try_from(tail.trailer_len()).expect("fits");
    let parts = [
        &bytes[..header_len],
        frame.chunks(),
        frame.index_chunk(),
        &bytes[frame_len - trailer_len..frame_len],
    ];
    assert_eq!(parts.concat(), &bytes[..frame_len]);
    let metalayers = Metalayers::parse(parts[0]);
    assert_eq!(metalayers, Ok(frame.metalayers()));
    assert_eq!(Trailer::parse(parts[3]), Ok(frame.trailer()));
    let span = header.chunks_span();
    assert_eq!(span.end - span.start, frame.chunks().len() as u64);

    if let Some(spec) = header.spec() {
        assert_eq!(
            spec.tail_len,
            (frame.index_chunk().len() + trailer_len) as u64
        );
        same_header(&frame, &spec);
    }
    if let Some(builder) = builder(&frame.trailer().metalayers()) {
        let again = builder.finish_trailer();
        assert_eq!(Trailer::parse(&again), Ok(frame.trailer()));
        assert_eq!(again.len(), trailer_len);
    }
    for metalayer in &frame.metalayers() {
        nd_metalayer(metalayer.body);
    }
    if let Ok(Some(array)) = frame.nd() {
        assert_eq!(array.check(&header), Ok(()));
        assert_eq!(array.chunk_count(), Some(header.chunk_count()));
    }
}

fn same_header(frame: &Blosc2Frame<'_>, want: &FrameSpec) {
    let Some(builder) = builder(&frame.metalayers()) else {
        return;
    };
    let again = builder
        .finish_header(want)
        .expect("what was decoded can be encoded");
    let header = FrameHeader::parse(&again).expect("own encoding");
    assert_eq!(header.header_len(), frame.header().header_len());
    assert_eq!(header.frame_len(), frame.header().frame_len());
    assert_eq!(header.spec(), Some(*want));
    assert_eq!(Metalayers::parse(&again), Ok(frame.metalayers()));
}

/// Returns a builder with the same metalayers; `None` if there are too many, or two have the same
/// name.
fn builder(metalayers: &Metalayers<'_>) -> Option<MetalayersBuilder> {
    let mut builder = MetalayersBuilder::default();
    assert_eq!(metalayers.iter().len(), metalayers.len());
    for metalayer in metalayers {
        assert!(metalayers.get(metalayer.name).is_some());
        builder.push(metalayer.name, metalayer.body).ok()?;
    }
    Some(builder)
}

/// Checks that the parts that a remote reader fetches first, the fixed part and the last 23 bytes,
/// are independent of the bytes between them; a trailer has its declared length.
///
/// # Panics
///
/// Panics if the law is violated.
pub fn b2nd_parts(bytes: &[u8]) {
    if let Ok(header) = FrameHeader::parse(bytes) {
        let own = FrameHeader::parse(&bytes[..87]).expect("the fixed part");
        assert_eq!(own.spec(), header.spec());
    }
    if let Ok(tail) = TrailerTail::parse(bytes) {
        assert_eq!(TrailerTail::parse(&bytes[bytes.len() - 23..]), Ok(tail));
        if Trailer::parse(bytes).is_ok() {
            assert_eq!(bytes.len(), tail.trailer_len() as usize);
        }
    }
}
