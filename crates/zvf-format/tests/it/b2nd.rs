//! Frames: a real one written out by hand, limits, damage, properties.

use proptest::prelude::*;
use zvf_format::b2nd::{
    Blosc2Frame, DTYPE_NUMPY, FrameError, FrameHeader, FrameHeaderError, FrameLimit, FrameSpec,
    FrameType, Length, MetalayerLimit, Metalayers, MetalayersBuilder, MetalayersError, NdError,
    NdForm, NdGeometryError, NdLimit, NdMetalayer, NdMetalayerBuilder, NdMetalayerError, NdPart,
    Trailer, TrailerError, TrailerTail,
};
use zvf_testkit::{
    golden::{Golden, unhex},
    hostile, laws, walk,
};

/// Decodes pieces of hexadecimal text, ignoring spaces.
fn hex(pieces: &[&str]) -> Vec<u8> {
    unhex(&pieces.concat().replace(' ', ""))
}

/// Returns an int32 array of 5 by 7 in chunks of 4 by 5 and blocks of 2 by 3.
fn b2nd() -> Vec<u8> {
    hex(&[
        "97 00 02",
        "92 d3 0000000000000005 d3 0000000000000007",
        "92 d2 00000004 d2 00000005",
        "92 d2 00000002 d2 00000003",
        "00 db 00000003 3c6934", // NumPy, "<i4"
    ])
}

/// Returns an array of 6 by 8 in chunks of 4 by 4 and blocks of 2 by 3, as written by Caterva
/// 0.7.3.
fn caterva() -> Vec<u8> {
    hex(&[
        "95 00 02",
        "92 d3 00 00 00 00 00 00 00 06 d3 00 00 00 00 00 00 00 08",
        "92 d2 00 00 00 04 d2 00 00 00 04",
        "92 d2 00 00 00 02 d2 00 00 00 03",
    ])
}

/// Returns the header of a real frame with that array, LZ4 and SHUFFLE.
fn header() -> Vec<u8> {
    let fixed = hex(&[
        "9e a8 62326672616d6500",  // 00 "b2frame\0"
        "d2 000000a5",             // 0a header length 165
        "cf 00000000000002b0",     // 0f frame length 688
        "a4 12 00 51 02",          // 18 version 2, contiguous, level 5 of LZ4, automatic
        "d3 0000000000000180",     // 1d nbytes 384
        "d3 00000000000001a8",     // 26 cbytes 424
        "d2 00000004",             // 2f typesize
        "d2 00000018",             // 34 blocksize
        "d2 00000060",             // 39 chunksize
        "d1 0001 d1 0001",         // 3e threads
        "c2",                      // 44 no trailing metalayers
        "d8 06 000000000001",      // 45 filters: SHUFFLE in the last slot
        "01 00 000000000000",      // 4d codec, its parameter, filter parameters
        "00 00",                   // 55 flags, reserved
        "93 cd 0011 de 0001",      // 57 metalayers: 17 bytes of names, one name
        "a4 62326e64 d2 0000006b", // 5e "b2nd" at 0x6b
        "dc 0001 c6 00000035",     // 68 one body of 53 bytes
    ]);
    [fixed, b2nd()].concat()
}

/// Returns a trailer without metalayers.
fn trailer() -> Vec<u8> {
    hex(&[
        "94 01",
        "93 cd 0006 de 0000 dc 0000",
        "ce 00000023 d8 00",
        "00000000000000000000000000000000",
    ])
}

/// Returns the real frame with a pattern in place of chunks and index, which are not decoded here.
fn frame() -> Vec<u8> {
    [header(), vec![0x5a; 424], vec![0xa5; 64], trailer()].concat()
}

/// Returns a trailer with two metalayers.
fn two_in_trailer() -> Vec<u8> {
    let mut builder = MetalayersBuilder::default();
    builder.push("k1", b"one").unwrap();
    builder.push("größe", b"").unwrap();
    builder.finish_trailer()
}

fn spec() -> FrameSpec {
    FrameSpec {
        frame_type: FrameType::Contiguous,
        codec: 1,
        user_codec: 1,
        codec_meta: 0,
        level: 5,
        split_mode: 3,
        filters: [0, 0, 0, 0, 0, 1],
        filter_metas: [0; 6],
        uses_dictionary: false,
        typesize: 4,
        blocksize: 24,
        chunksize: 96,
        nbytes: 384,
        cbytes: 424,
        tail_len: 99,
        compression_threads: 1,
        decompression_threads: 1,
        has_vlmetalayers: false,
    }
}

fn edited(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes.splice(at..at + with.len(), with.iter().copied());
    bytes
}

#[track_caller]
fn check_array(at: usize, with: &[u8], want: NdMetalayerError) {
    let bytes = edited(b2nd(), at, with);
    assert_eq!(NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap_err(), want);
    laws::nd_metalayer(&bytes);
}

#[track_caller]
fn check_frame(at: usize, with: &[u8], want: impl Into<FrameError>) {
    let bytes = edited(frame(), at, with);
    assert_eq!(Blosc2Frame::parse(&bytes).unwrap_err(), want.into());
    laws::b2nd_frame(&bytes);
    assert_eq!(walk::b2nd_frame(&bytes), None);
}

/// Damages the trailer, which starts at 653.
#[track_caller]
fn check_trailer(at: usize, with: &[u8], want: impl Into<FrameError>) {
    check_frame(653 + at, with, want);
}

#[test]
fn real_metalayers_are_read_as_annotated() {
    let bytes = b2nd();
    assert_eq!(bytes.len(), 6 + 19 * 2 + 6 + 3);
    let array = NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap();
    assert_eq!((array.form(), array.rank()), (NdForm::B2nd, 2));
    assert!(array.shape().iter().eq([5, 7]));
    assert!(array.chunk_shape().iter().eq([4, 5]));
    assert!(array.block_shape().iter().eq([2, 3]));
    assert_eq!(
        (array.dtype(), array.dtype_format()),
        (Some("<i4"), Some(DTYPE_NUMPY))
    );
    assert!(array.grid().eq([2, 2]) && array.block_grid().eq([2, 2]));
    assert_eq!(
        (array.chunk_count(), array.block_count()),
        (Some(4), Some(4))
    );
    assert_eq!(
        (array.block_len(4), array.chunk_len(4)),
        (Some(24), Some(96))
    );

    let bytes = caterva();
    assert_eq!(bytes.len(), 6 + 19 * 2);
    let array = NdMetalayer::parse(NdForm::Caterva, &bytes).unwrap();
    assert_eq!((array.form(), array.rank()), (NdForm::Caterva, 2));
    assert!(array.shape().iter().eq([6, 8]));
    assert!(array.block_shape().iter().eq([2, 3]));
    assert_eq!((array.dtype(), array.dtype_format()), (None, None));
    assert!(array.block_grid().eq([2, 2]));
}

#[test]
fn real_metalayers_are_what_the_encoder_writes() {
    let mut builder = NdMetalayerBuilder::default();
    builder
        .push_axis(5, 4, 2)
        .unwrap()
        .push_axis(7, 5, 3)
        .unwrap();
    assert_eq!(builder.finish_b2nd(DTYPE_NUMPY, "<i4").unwrap(), b2nd());
    let mut builder = NdMetalayerBuilder::default();
    builder
        .push_axis(6, 4, 2)
        .unwrap()
        .push_axis(8, 4, 3)
        .unwrap();
    assert_eq!(builder.finish_caterva().unwrap(), caterva());
}

#[test]
fn each_form_is_refused_under_the_others_name() {
    use NdMetalayerError as E;
    let error = NdMetalayer::parse(NdForm::Caterva, &b2nd()).unwrap_err();
    assert_eq!(error, E::Entries(0x97));
    let error = NdMetalayer::parse(NdForm::B2nd, &caterva()).unwrap_err();
    assert_eq!(error, E::Entries(0x95));
    // The reference distinguishes them by remaining bytes; here both must agree.
    let tailless = edited(caterva(), 0, &[0x97]);
    let error = NdMetalayer::parse(NdForm::B2nd, &tailless).unwrap_err();
    assert_eq!(error, E::Truncated(NdPart::Dtype));
    let tailed = edited(b2nd(), 0, &[0x95]);
    let error = NdMetalayer::parse(NdForm::Caterva, &tailed).unwrap_err();
    assert_eq!(error, E::TrailingBytes(9));
}

#[test]
fn rejects_each_damaged_field_of_the_metalayer() {
    use NdMetalayerError as E;
    let list = |part, head| E::ListHead { part, head };
    let marker = |part, marker| E::Marker { part, marker };
    check_array(0, &[0x96], E::Entries(0x96));
    check_array(1, &[1], E::Version(1));
    check_array(2, &[17], E::Rank(17));
    check_array(2, &[200], E::Rank(200));
    check_array(2, &[3], list(NdPart::Shape, 0x92));
    check_array(3, &[0x91], list(NdPart::Shape, 0x91));
    check_array(4, &[0xcf], marker(NdPart::Shape, 0xcf));
    check_array(13, &[0xd2], marker(NdPart::Shape, 0xd2));
    check_array(22, &[0x93], list(NdPart::ChunkShape, 0x93));
    check_array(28, &[0xce], marker(NdPart::ChunkShape, 0xce));
    check_array(33, &[0xdc], list(NdPart::BlockShape, 0xdc));
    check_array(34, &[0xd3], marker(NdPart::BlockShape, 0xd3));
    check_array(44, &[0x80], marker(NdPart::Dtype, 0x80));
    check_array(45, &[0xda], marker(NdPart::Dtype, 0xda));
    check_array(49, &[4], E::Truncated(NdPart::Dtype));
    check_array(46, &[0xff; 4], E::Truncated(NdPart::Dtype));
    check_array(49, &[2], E::TrailingBytes(1));
    check_array(50, &[0xff], E::DtypeText);
    check_array(5, &[0x80], E::Negative { axis: 0 });
    check_array(29, &[0xff], E::Negative { axis: 1 });
    check_array(40, &[0x80], E::Negative { axis: 1 });
    check_array(27, &[0], E::Zero { axis: 0 });
    check_array(38, &[0], E::Zero { axis: 0 });
    check_array(43, &[6], E::BlockPastChunk { axis: 1 });
}

#[test]
fn sixteen_axes_have_list_heads_outside_messagepack() {
    let mut builder = NdMetalayerBuilder::default();
    for _ in 0..15 {
        builder.push_axis(2, 2, 1).unwrap();
    }
    let bytes = builder.finish_caterva().unwrap();
    assert_eq!(bytes[3], 0x9f);
    assert_eq!(
        NdMetalayer::parse(NdForm::Caterva, &bytes).unwrap().rank(),
        15
    );
    builder.push_axis(3, 2, 1).unwrap();
    assert_eq!(builder.finish_caterva().unwrap_err(), NdLimit::Rank(16));
    assert_eq!(builder.push_axis(1, 1, 1).unwrap_err(), NdLimit::Rank(17));
    let bytes = builder.finish_b2nd(DTYPE_NUMPY, "|u1").unwrap();
    assert_eq!((bytes[2], bytes[3]), (16, 0xa0));
    let array = NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap();
    assert_eq!((array.rank(), array.chunk_count()), (16, Some(2)));
    assert_eq!(array.block_count(), Some(1 << 16));
    laws::nd_metalayer(&bytes);
    let mut caterva = edited(bytes, 0, &[0x95]);
    caterva.truncate(6 + 19 * 16);
    let error = NdMetalayer::parse(NdForm::Caterva, &caterva).unwrap_err();
    assert_eq!(error, NdMetalayerError::Rank(16));
}

#[test]
fn arrays_without_axes_or_items() {
    let builder = NdMetalayerBuilder::default();
    let bytes = builder.finish_b2nd(DTYPE_NUMPY, "<f8").unwrap();
    let array = NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap();
    assert!(array.shape().is_empty() && array.chunk_shape().is_empty());
    assert_eq!(
        (array.chunk_count(), array.chunk_len(8)),
        (Some(1), Some(8))
    );

    let mut builder = NdMetalayerBuilder::default();
    builder
        .push_axis(3, 3, 3)
        .unwrap()
        .push_axis(0, 0, 0)
        .unwrap();
    builder.push_axis(0, 4, 2).unwrap();
    let bytes = builder.finish_caterva().unwrap();
    let array = NdMetalayer::parse(NdForm::Caterva, &bytes).unwrap();
    assert!(array.grid().eq([1, 0, 0]) && array.block_grid().eq([1, 0, 2]));
    assert_eq!(
        (array.chunk_count(), array.chunk_len(8)),
        (Some(0), Some(0))
    );
    laws::nd_metalayer(&bytes);
}

#[test]
fn geometry_at_the_end_of_64_bits() {
    let mut builder = NdMetalayerBuilder::default();
    let (wide, max) = (i64::MAX.unsigned_abs(), i32::MAX.unsigned_abs());
    for _ in 0..3 {
        builder.push_axis(wide, max, 1).unwrap();
    }
    let bytes = builder.finish_b2nd(DTYPE_NUMPY, "").unwrap();
    let array = NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap();
    assert_eq!(array.grid().next(), Some(wide.div_ceil(u64::from(max))));
    assert_eq!((array.chunk_count(), array.block_count()), (None, None));
    assert_eq!((array.block_len(7), array.chunk_len(7)), (Some(7), None));
    laws::nd_metalayer(&bytes);
}

#[test]
fn real_frame_is_read_as_annotated() {
    let golden = Golden::open("b2nd");
    let real = golden.file("g03_2d_pad_both.b2nd");
    assert!(real.starts_with(&header()) && real.ends_with(&trailer()));
    let bytes = frame();
    assert_eq!(bytes.len(), 688);
    let frame = Blosc2Frame::parse(&bytes).unwrap();
    let header = frame.header();
    assert_eq!(
        (header.version(), header.frame_type()),
        (2, FrameType::Contiguous)
    );
    assert_eq!(
        (header.codec(), header.level(), header.split_mode()),
        (1, 5, 3)
    );
    assert_eq!((header.header_len(), header.frame_len()), (165, 688));
    assert_eq!((header.nbytes(), header.cbytes()), (384, 424));
    assert_eq!(header.filters(), [0, 0, 0, 0, 0, 1]);
    assert_eq!((header.chunk_count(), header.chunks_span()), (4, 165..589));
    assert_eq!(frame.metalayer("b2nd"), Some(&b2nd()[..]));
    assert_eq!(frame.metalayer("caterva"), None);
    assert_eq!((frame.chunks().len(), frame.index_chunk().len()), (424, 64));
    assert!(frame.trailer().metalayers().is_empty());
    let array = frame.nd().unwrap().unwrap();
    assert_eq!(array.dtype(), Some("<i4"));
    laws::b2nd_frame(&bytes);
}

#[test]
fn real_frame_is_what_the_encoders_write() {
    let mut builder = MetalayersBuilder::default();
    builder.push("b2nd", &b2nd()).unwrap();
    assert_eq!(builder.finish_header(&spec()).unwrap(), header());
    assert_eq!(MetalayersBuilder::default().finish_trailer(), trailer());
    let bytes = header();
    assert_eq!(FrameHeader::parse(&bytes).unwrap().spec(), Some(spec()));
}

#[test]
fn parts_are_parsed_separately_from_the_ranges_of_a_remote_reader() {
    let bytes = frame();
    let header = FrameHeader::parse(&bytes[..87]).unwrap();
    assert_eq!(header.frame_len(), 688);
    let metalayers = Metalayers::parse(&bytes[..165]).unwrap();
    assert_eq!(metalayers.get("b2nd"), Some(&b2nd()[..]));
    let tail = TrailerTail::parse(&bytes[688 - 23..]).unwrap();
    assert_eq!(tail.trailer_len(), 35);
    assert!(Trailer::parse(&bytes[688 - 35..]).is_ok());
    // More bytes than the part: the header is at their start, the tail at their end.
    assert!(FrameHeader::parse(&bytes).is_ok() && TrailerTail::parse(&bytes).is_ok());
    let error = Metalayers::parse(&bytes[..166]).unwrap_err();
    assert_eq!(error, MetalayersError::TrailingBytes(1));
    assert_eq!(Trailer::parse(&bytes).unwrap_err(), TrailerError::Len(35));
}

#[test]
fn bytes_after_a_frame_are_ignored() {
    let mut bytes = frame();
    bytes.extend([0xee; 100]);
    let frame = Blosc2Frame::parse(&bytes).unwrap();
    assert_eq!(frame.index_chunk(), [0xa5; 64]);
    laws::b2nd_frame(&bytes);
}

#[test]
fn a_sparse_frame_has_no_chunks_in_it() {
    let bytes = [header(), vec![0xa5; 64], trailer()].concat();
    let bytes = edited(edited(bytes, 0x1a, &[1]), 0x16, &[1, 8]);
    let frame = Blosc2Frame::parse(&bytes).unwrap();
    assert_eq!(frame.header().frame_type(), FrameType::Sparse);
    assert_eq!((frame.header().cbytes(), frame.chunks().len()), (424, 0));
    assert_eq!(frame.index_chunk(), [0xa5; 64]);
    laws::b2nd_frame(&bytes);
}

#[test]
fn rejects_each_damaged_field_of_the_header() {
    use FrameHeaderError as E;
    for at in [
        0x00, 0x01, 0x0a, 0x0f, 0x18, 0x1d, 0x26, 0x2f, 0x34, 0x39, 0x3e, 0x41, 0x44, 0x45,
    ] {
        check_frame(at, &[0xc1], E::Marker { at, marker: 0xc1 });
    }
    check_frame(0x08, b"f", E::Magic(*b"b2framf\0"));
    check_frame(0x09, b"!", E::Magic(*b"b2frame!"));
    check_frame(0x19, &[0x10], E::Version(0));
    check_frame(0x19, &[0x14], E::Version(4));
    check_frame(0x19, &[0x02], E::OffsetWidth(0));
    check_frame(0x19, &[0x22], E::OffsetWidth(2));
    check_frame(0x19, &[0x53], E::VariableChunks);
    check_frame(0x19, &[0x93], E::VariableBlocks);
    check_frame(0x1a, &[2], E::FrameType(2));
    check_frame(0x46, &[7], E::FilterSlots(7));
    for (at, length) in [
        (0x0b, Length::Header),
        (0x1e, Length::Nbytes),
        (0x27, Length::Cbytes),
        (0x30, Length::Typesize),
        (0x35, Length::Blocksize),
        (0x3a, Length::Chunksize),
    ] {
        check_frame(at, &[0x80], E::Negative(length));
        check_frame(at, &[0xff; 4], E::Negative(length));
    }
    check_frame(0x33, &[0], E::Zero(Length::Typesize));
    check_frame(0x3d, &[0], E::Zero(Length::Chunksize));
    check_frame(0x0e, &[96], E::HeaderLen(96));
    check_frame(0x0b, &[0x7f, 0xff, 0xff, 0xff], E::FrameLen(688));
    check_frame(0x10, &[0; 8], E::FrameLen(0));
    check_frame(0x27, &[0x7f], E::FrameLen(688));
    check_frame(0x2d, &[1, 0xe9], E::FrameLen(688));
    check_frame(0x10, &[0xff; 8], FrameError::Truncated);
    check_frame(0x17, &[0xb1], FrameError::Truncated);
    // With one byte less of index, the trailer is not at the end of the frame.
    check_frame(0x17, &[0xaf], TrailerError::Marker(0));
    check_frame(0x2d, &[1, 0xc9], FrameError::IndexLen(31));
}

#[test]
fn rejects_each_damaged_field_of_the_metalayers() {
    use MetalayersError as E;
    let offset = |offset| E::Offset {
        metalayer: 0,
        offset,
    };
    check_frame(0x0e, &[0xa4], E::Truncated);
    check_frame(0x0e, &[0xa6], E::TrailingBytes(1));
    for at in [0x57, 0x58, 0x5b, 0x5e, 0x63, 0x68, 0x6b] {
        check_frame(at, &[0xc1], E::Marker(0xc1));
    }
    check_frame(0x5c, &[0, 17], E::Count(17));
    check_frame(0x5c, &[0xff, 0xff], E::Count(u16::MAX));
    check_frame(0x5c, &[0, 0], E::Marker(0xa4));
    check_frame(0x5c, &[0, 2], E::Marker(0xdc));
    check_frame(0x5e, &[0xa3], E::Marker(0x64));
    check_frame(0x5f, &[0xff], E::Name);
    check_frame(0x67, &[0x6a], offset(0x6a));
    check_frame(0x64, &[0xff; 4], offset(-1));
    check_frame(
        0x69,
        &[0, 2],
        E::Bodies {
            names: 1,
            bodies: 2,
        },
    );
    check_frame(0x6f, &[0x34], E::TrailingBytes(1));
    check_frame(0x6f, &[0x36], E::Truncated);
    check_frame(0x6c, &[0xff; 4], E::Truncated);
    // The length of the names is ignored.
    assert!(Blosc2Frame::parse(&edited(frame(), 0x59, &[0xff; 2])).is_ok());
}

#[test]
fn rejects_each_damaged_field_of_the_trailer() {
    use TrailerError as E;
    check_trailer(0, &[0x93], E::Marker(0x93));
    check_trailer(1, &[2], E::Version(2));
    check_trailer(2, &[0xc1], E::Metalayers(MetalayersError::Marker(0xc1)));
    check_trailer(8, &[1], E::Metalayers(MetalayersError::Marker(0xdc)));
    check_trailer(
        7,
        &[0x20, 0x01],
        E::Metalayers(MetalayersError::Count(8193)),
    );
    let bodies = MetalayersError::Bodies {
        names: 0,
        bodies: 1,
    };
    check_trailer(11, &[1], E::Metalayers(bodies));
    check_trailer(12, &[0xcd], E::Marker(0xcd));
    check_trailer(16, &[0x24], E::Marker(0xa5));
    check_trailer(16, &[0x22], E::Marker(0x01));
    check_trailer(16, &[22], E::Truncated);
    check_trailer(16, &[0], E::Truncated);
    check_trailer(13, &[0xff; 4], FrameError::TrailerLen(u32::MAX));
    check_trailer(17, &[0xc7], E::Marker(0xc7));
    check_trailer(18, &[1], E::Fingerprint(1));
    // Without a kind the fingerprint has no meaning.
    assert!(Blosc2Frame::parse(&edited(frame(), 653 + 19, &[0xff; 16])).is_ok());
    // A trailer so long that no bytes remain for the index.
    let bytes = edited(frame(), 653 + 15, &[0, 99]);
    assert_eq!(
        Blosc2Frame::parse(&bytes).unwrap_err(),
        FrameError::IndexLen(0)
    );
}

#[test]
fn an_array_must_belong_to_its_frame() {
    use NdGeometryError as E;
    let check = |at, with: &[u8], want: NdError| {
        let bytes = edited(frame(), at, with);
        let error = Blosc2Frame::parse(&bytes).unwrap().nd().unwrap_err();
        assert_eq!(error, want);
        laws::b2nd_frame(&bytes);
    };
    check(0x33, &[8], E::Blocksize(24).into());
    check(0x38, &[25], E::Blocksize(25).into());
    check(0x3d, &[97], E::Chunksize(97).into());
    check(0x25, &[0x81], E::Nbytes(385).into());
    check(0x24, &[0, 0x60], E::Nbytes(96).into());
    check(0x7c, &[9], E::Nbytes(384).into());
    check(0x71, &[1], NdMetalayerError::Version(1).into());
    let renamed = edited(frame(), 0x5f, b"c2nd");
    assert_eq!(Blosc2Frame::parse(&renamed).unwrap().nd(), Ok(None));
}

#[test]
fn the_newer_metalayer_wins() {
    let mut builder = MetalayersBuilder::default();
    builder.push("caterva", &caterva()).unwrap();
    builder.push("b2nd", &b2nd()).unwrap();
    let header = builder.finish_header(&spec()).unwrap();
    let bytes = [header, vec![0; 424 + 64], trailer()].concat();
    let frame = Blosc2Frame::parse(&bytes).unwrap();
    assert_eq!(frame.metalayers().len(), 2);
    assert_eq!(frame.nd().unwrap().unwrap().form(), NdForm::B2nd);
    laws::b2nd_frame(&bytes);
}

#[test]
fn rejects_every_prefix() {
    let bytes = frame();
    hostile::prefixes(&bytes, |prefix| {
        let want = match prefix.len() {
            0..87 => FrameError::Header(FrameHeaderError::Truncated),
            _ => FrameError::Truncated,
        };
        assert_eq!(Blosc2Frame::parse(prefix).unwrap_err(), want);
    });
    hostile::prefixes(&header(), |prefix| {
        assert_eq!(
            Metalayers::parse(prefix).unwrap_err(),
            MetalayersError::Truncated
        );
    });
    hostile::prefixes(&two_in_trailer(), |prefix| {
        assert!(Trailer::parse(prefix).is_err());
    });
    for (form, bytes) in [(NdForm::B2nd, b2nd()), (NdForm::Caterva, caterva())] {
        hostile::prefixes(&bytes, |prefix| {
            let want = match prefix.len() {
                0..3 => NdPart::Head,
                3..22 => NdPart::Shape,
                22..33 => NdPart::ChunkShape,
                33..44 => NdPart::BlockShape,
                _ => NdPart::Dtype,
            };
            let error = NdMetalayer::parse(form, prefix).unwrap_err();
            assert_eq!(error, NdMetalayerError::Truncated(want));
        });
    }
}

#[test]
fn reads_at_every_alignment() {
    fn check(bytes: &[u8], walk: fn(&[u8]) -> Option<u64>) {
        let want = walk(bytes).unwrap();
        hostile::alignments(bytes, |moved| assert_eq!(walk(moved), Some(want)));
    }
    check(&frame(), walk::b2nd_frame);
    check(&frame(), walk::b2nd_parts);
    check(&two_in_trailer(), walk::b2nd_parts);
    check(&b2nd(), walk::nd_metalayer);
    check(&caterva(), walk::nd_metalayer);
}

#[test]
fn survives_damage_to_every_byte() {
    hostile::damage(&frame(), laws::b2nd_frame);
    hostile::damage(&b2nd(), laws::nd_metalayer);
    hostile::damage(&caterva(), laws::nd_metalayer);
    let walk = |bytes: &[u8]| {
        walk::b2nd_parts(bytes);
    };
    hostile::damage(&header(), walk);
    hostile::damage(&two_in_trailer(), walk);
}

#[test]
fn trailing_metalayers_round_trip() {
    let bytes = two_in_trailer();
    let trailer = Trailer::parse(&bytes).unwrap();
    assert_eq!(trailer.metalayers().get("k1"), Some(&b"one"[..]));
    assert_eq!(trailer.metalayers().get("größe"), Some(&b""[..]));
    assert_eq!(trailer.metalayers().get("k2"), None);
    // The offset counts from the trailer's first byte.
    let at = bytes.iter().position(|&byte| byte == 0xc6).unwrap();
    assert_eq!(bytes[13..17], u32::try_from(at).unwrap().to_be_bytes());
    let whole = [header(), vec![0; 424 + 64], bytes.clone()].concat();
    let frame_len = whole.len() as u64;
    let whole = edited(whole, 0x10, &frame_len.to_be_bytes());
    assert_eq!(Blosc2Frame::parse(&whole).unwrap().trailer(), trailer);
    laws::b2nd_frame(&whole);
}

#[test]
fn array_encoder_rejects_values_beyond_the_format() {
    let mut builder = NdMetalayerBuilder::default();
    builder.push_axis(5, 4, 2).unwrap();
    let before = builder.finish_caterva().unwrap();
    let mut check = |shape, chunk, block, want| {
        assert_eq!(builder.push_axis(shape, chunk, block).unwrap_err(), want);
        assert_eq!(
            builder.finish_caterva().unwrap(),
            before,
            "a refused axis leaves no trace"
        );
    };
    check(1 << 63, 1, 1, NdLimit::Extent);
    check(1, 1 << 31, 1, NdLimit::Extent);
    check(1, 1, 1 << 31, NdLimit::Extent);
    check(1, 0, 0, NdLimit::Zero);
    check(1, 1, 0, NdLimit::Zero);
    check(1, 1, 2, NdLimit::BlockPastChunk);
    let error = builder.finish_b2nd(128, "<i4").unwrap_err();
    assert_eq!(error, NdLimit::DtypeFormat(128));
}

#[test]
fn frame_encoder_rejects_values_beyond_the_format() {
    let mut builder = MetalayersBuilder::default();
    let long = "n".repeat(32);
    assert_eq!(
        builder.push(&long, b"").unwrap_err(),
        MetalayerLimit::LongName(32)
    );
    builder.push(&long[1..], b"").unwrap();
    let error = builder.push(&long[1..], b"").unwrap_err();
    assert_eq!(error, MetalayerLimit::DuplicateName);
    for number in 1..16 {
        builder.push(&format!("{number}"), &[0; 9]).unwrap();
    }
    assert_eq!(builder.push("", b"").unwrap_err(), MetalayerLimit::Count);
    let header = builder.finish_header(&spec()).unwrap();
    assert_eq!(Metalayers::parse(&header).unwrap().len(), 16);

    let check = |spec: FrameSpec, want: FrameLimit| {
        assert_eq!(builder.finish_header(&spec).unwrap_err(), want);
    };
    let header = FrameLimit::Header;
    check(
        FrameSpec {
            codec: 16,
            ..spec()
        },
        FrameLimit::Codec(16),
    );
    check(
        FrameSpec {
            level: 16,
            ..spec()
        },
        FrameLimit::Level(16),
    );
    check(
        FrameSpec {
            split_mode: 0,
            ..spec()
        },
        FrameLimit::SplitMode(0),
    );
    check(
        FrameSpec {
            split_mode: 5,
            ..spec()
        },
        FrameLimit::SplitMode(5),
    );
    check(
        FrameSpec {
            tail_len: u64::MAX,
            ..spec()
        },
        FrameLimit::FrameLen,
    );
    let negative = |length| header(FrameHeaderError::Negative(length));
    check(
        FrameSpec {
            typesize: 1 << 31,
            ..spec()
        },
        negative(Length::Typesize),
    );
    check(
        FrameSpec {
            cbytes: 1 << 63,
            ..spec()
        },
        negative(Length::Cbytes),
    );
    check(
        FrameSpec {
            typesize: 0,
            ..spec()
        },
        header(FrameHeaderError::Zero(Length::Typesize)),
    );
    check(
        FrameSpec {
            chunksize: 0,
            ..spec()
        },
        header(FrameHeaderError::VariableChunks),
    );
}

fn axes() -> impl Strategy<Value = Vec<(u64, u32, u32)>> {
    let shape = prop_oneof![9 => 0..100_u64, 1 => 0..=i64::MAX.unsigned_abs()];
    let chunk = prop_oneof![9 => 1..50_u32, 1 => 1..=i32::MAX.unsigned_abs()];
    let axis = (shape, chunk, 1..50_u32);
    let axis = axis.prop_map(|(shape, chunk, block)| (shape, chunk, block.min(chunk)));
    prop::collection::vec(axis, 0..=16)
}

/// Generates metalayers with distinct names.
fn metalayers() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let body = prop::collection::vec(any::<u8>(), 0..40);
    let many = prop::collection::btree_map("[a-zé]{0,12}", body, 0..=16);
    many.prop_map(|many| many.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: zvf_testkit::sample::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn decoding_returns_the_encoded_values(axes in axes(), format in 0..128_u8, dtype in ".{0,20}") {
        let mut builder = NdMetalayerBuilder::default();
        for &(shape, chunk, block) in &axes {
            builder.push_axis(shape, chunk, block).unwrap();
        }
        let bytes = builder.finish_b2nd(format, &dtype).unwrap();
        let array = NdMetalayer::parse(NdForm::B2nd, &bytes).unwrap();
        prop_assert_eq!((array.dtype_format(), array.dtype()), (Some(format), Some(&dtype[..])));
        prop_assert!(array.shape().iter().eq(axes.iter().map(|axis| axis.0)));
        prop_assert!(array.chunk_shape().iter().eq(axes.iter().map(|axis| axis.1)));
        prop_assert!(array.block_shape().iter().eq(axes.iter().map(|axis| axis.2)));
        laws::nd_metalayer(&bytes);
        match builder.finish_caterva() {
            Ok(bytes) => {
                let same = NdMetalayer::parse(NdForm::Caterva, &bytes).unwrap();
                prop_assert_eq!(same.shape(), array.shape());
                prop_assert_eq!(same.block_shape(), array.block_shape());
                laws::nd_metalayer(&bytes);
            }
            Err(error) => prop_assert_eq!((error, axes.len()), (NdLimit::Rank(16), 16)),
        }
    }

    #[test]
    fn frames_return_the_encoded_values(
        fixed in metalayers(),
        variable in metalayers(),
        sparse in any::<bool>(),
        chunks in prop::collection::vec(any::<u8>(), 0..60),
        index_len in 32..90_usize,
        (codec, level, split_mode) in (0..16_u8, 0..16_u8, 1..5_u8),
        filters in any::<[u8; 6]>(),
        threads in any::<(i16, i16)>(),
        flags in any::<(bool, bool)>(),
    ) {
        let mut trailing = MetalayersBuilder::default();
        for (name, body) in &variable {
            trailing.push(name, body).unwrap();
        }
        let trailer = trailing.finish_trailer();
        let frame_type = if sparse { FrameType::Sparse } else { FrameType::Contiguous };
        let spec = FrameSpec {
            frame_type,
            codec,
            level,
            split_mode,
            filters,
            filter_metas: filters.map(|filter| filter ^ 0x55),
            uses_dictionary: flags.0,
            has_vlmetalayers: flags.1,
            compression_threads: threads.0,
            decompression_threads: threads.1,
            cbytes: chunks.len() as u64,
            tail_len: (index_len + trailer.len()) as u64,
            ..spec()
        };
        let mut builder = MetalayersBuilder::default();
        for (name, body) in &fixed {
            builder.push(name, body).unwrap();
        }
        let header = builder.finish_header(&spec).unwrap();
        let stored = if sparse { &[][..] } else { &chunks };
        let bytes = [&header[..], stored, &vec![7; index_len], &trailer].concat();
        let frame = Blosc2Frame::parse(&bytes).unwrap();
        prop_assert_eq!(frame.header().spec(), Some(spec));
        prop_assert_eq!(frame.chunks(), stored);
        prop_assert_eq!(frame.index_chunk().len(), index_len);
        for (found, want) in [(frame.metalayers(), &fixed), (frame.trailer().metalayers(), &variable)] {
            prop_assert_eq!(found.len(), want.len());
            for (metalayer, (name, body)) in found.iter().zip(want) {
                prop_assert_eq!((metalayer.name, metalayer.body), (&name[..], &body[..]));
                prop_assert_eq!(found.get(name), Some(&body[..]));
            }
        }
        laws::b2nd_frame(&bytes);
    }

    #[test]
    fn any_bytes_after_a_head_obey_the_laws(
        rank in 0..4_u8,
        body in prop::collection::vec(
            prop_oneof![6 => Just(0_u8), 2 => 0x90..0x94_u8, 2 => 0xd2..0xd4_u8, 1 => any::<u8>()],
            0..80,
        ),
    ) {
        laws::nd_metalayer(&[&[0x97, 0, rank], &body[..]].concat());
        laws::nd_metalayer(&[&[0x95, 0, rank], &body[..]].concat());
        let _ = walk::b2nd_parts(&[&header()[..87], &body].concat());
    }
}
