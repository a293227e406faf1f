//! Frames of the reference writers, and damaged ones.

use serde_json::Value;
use zvf_format::b2nd::{
    Blosc2Frame, FrameError, FrameHeaderError, FrameType, Length, Metalayers, MetalayersBuilder,
    MetalayersError, NdError, NdForm, NdGeometryError, NdMetalayer, NdMetalayerBuilder,
    NdMetalayerError, NdPart, TrailerError,
};
use zvf_testkit::{
    golden::{Golden, unhex},
    hostile, laws, walk,
};

use crate::golden::report;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Frame(FrameError),
    Array(NdError),
}

const fn header(error: FrameHeaderError) -> Fault {
    Fault::Frame(FrameError::Header(error))
}

const fn array(error: NdMetalayerError) -> Fault {
    Fault::Array(NdError::Metalayer(error))
}

const fn geometry(error: NdGeometryError) -> Fault {
    Fault::Array(NdError::Geometry(error))
}

/// Damaged files, and the expected error.
const REFUSED: [(&str, Fault); 15] = [
    (
        "n_magic.b2nd",
        header(FrameHeaderError::Magic(*b"c2frame\0")),
    ),
    ("n_truncated.b2nd", Fault::Frame(FrameError::Truncated)),
    ("n_header_len.b2nd", header(FrameHeaderError::HeaderLen(40))),
    (
        "n_header_len_big.b2nd",
        header(FrameHeaderError::FrameLen(688)),
    ),
    (
        "n_frame_version.b2nd",
        header(FrameHeaderError::Version(15)),
    ),
    (
        "n_typesize0.b2nd",
        header(FrameHeaderError::Zero(Length::Typesize)),
    ),
    (
        "n_chunksize_neg.b2nd",
        header(FrameHeaderError::Negative(Length::Chunksize)),
    ),
    ("n_ndim_200.b2nd", array(NdMetalayerError::Rank(200))),
    (
        "n_ndim_3.b2nd",
        array(NdMetalayerError::ListHead {
            part: NdPart::Shape,
            head: 0x92,
        }),
    ),
    ("n_block0.b2nd", array(NdMetalayerError::Zero { axis: 0 })),
    (
        "n_block_overflow.b2nd",
        geometry(NdGeometryError::Blocksize(24)),
    ),
    (
        "n_chunkshape_mismatch.b2nd",
        geometry(NdGeometryError::Chunksize(96)),
    ),
    (
        "n_meta_len.b2nd",
        Fault::Frame(FrameError::Metalayers(MetalayersError::Truncated)),
    ),
    (
        "n_trailer_mark.b2nd",
        Fault::Frame(FrameError::Trailer(TrailerError::Marker(0))),
    ),
    (
        "n_trailer_len.b2nd",
        Fault::Frame(FrameError::TrailerLen(1 << 20)),
    ),
];

/// Damaged files whose header, metalayers and trailer are valid and consistent, because these
/// codecs do not decode chunks.
const NOT_OURS: [(&str, &str); 9] = [
    (
        "n_chunk_offset.b2nd",
        "in the index chunk: start past the chunks",
    ),
    ("n_special_bits.b2nd", "in the index chunk: reserved kind"),
    ("n_bstart.b2nd", "in a chunk: block start outside"),
    ("n_bstart_neg.b2nd", "in a chunk: negative block start"),
    ("n_csize.b2nd", "in a chunk: stream too long"),
    ("n_csize_neg.b2nd", "in a chunk: run without token"),
    ("n_chunk_cbytes.b2nd", "in a chunk header: stored length"),
    ("n_chunk_nbytes.b2nd", "in a chunk header: decoded length"),
    ("n_chunk_blocksize.b2nd", "in a chunk header: block size"),
];

fn int(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn ints(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(int).collect()
}

/// Returns the start of a frame of the archive.
fn frame_bytes<'g>(golden: &'g Golden, case: &Value) -> &'g [u8] {
    let path = case["path"].as_str().unwrap();
    let file = if case["frame"]["frame_type"] == 1 {
        golden.file(&format!("{path}/chunks.b2frame"))
    } else {
        golden.file(path)
    };
    let offset = usize::try_from(int(&case["frame_offset"])).unwrap();
    &file[offset..]
}

fn check_header(name: &str, frame: &Blosc2Frame<'_>, want: &Value) {
    let header = frame.header();
    let bytes = |values: &[u8]| {
        values
            .iter()
            .map(|&value| u64::from(value))
            .collect::<Vec<_>>()
    };
    let numbers = [
        ("header_len", u64::from(header.header_len())),
        ("frame_len", header.frame_len()),
        ("frame_version", u64::from(header.version())),
        ("offset_width_code", 1),
        ("frame_type", u64::from(header.frame_type().number())),
        ("codec", u64::from(header.codec())),
        ("clevel", u64::from(header.level())),
        ("splitmode", u64::from(header.split_mode())),
        ("nbytes", header.nbytes()),
        ("cbytes", header.cbytes()),
        ("typesize", u64::from(header.typesize())),
        ("blocksize", u64::from(header.blocksize())),
        ("chunksize", u64::from(header.chunksize())),
        (
            "nthreads_c",
            u64::try_from(header.compression_threads()).unwrap(),
        ),
        (
            "nthreads_d",
            u64::try_from(header.decompression_threads()).unwrap(),
        ),
        ("nfilters", header.filters().len() as u64),
        ("udcodec", u64::from(header.user_codec())),
        ("codec_meta", u64::from(header.codec_meta())),
        ("nchunks", header.chunk_count()),
    ];
    for (key, found) in numbers {
        assert_eq!(found, int(&want[key]), "{name}: {key}");
    }
    let flags = [
        ("variable_chunks", header.has_variable_chunks()),
        ("vl_blocks", false),
        ("has_vlmeta", header.has_vlmetalayers()),
        ("use_dict", header.uses_dictionary()),
    ];
    for (key, found) in flags {
        assert_eq!(Value::from(found), want[key], "{name}: {key}");
    }
    assert_eq!(bytes(header.filters()), ints(&want["filters"]), "{name}");
    assert_eq!(
        bytes(header.filter_metas()),
        ints(&want["filters_meta"]),
        "{name}"
    );
}

fn check_array(name: &str, frame: &Blosc2Frame<'_>, want: &Value) {
    let array = frame
        .nd()
        .unwrap_or_else(|error| panic!("{name}: {error:?}"))
        .unwrap_or_else(|| panic!("{name}: no array"));
    assert_eq!(array.form().name(), want["metalayer"], "{name}");
    let entries = if array.form() == NdForm::B2nd { 7 } else { 5 };
    assert_eq!(entries, int(&want["entries"]), "{name}");
    assert_eq!(int(&want["version"]), 0, "{name}");
    assert_eq!(array.rank() as u64, int(&want["ndim"]), "{name}");
    let shape: Vec<_> = array.shape().iter().collect();
    let chunk_shape: Vec<_> = array.chunk_shape().iter().map(u64::from).collect();
    let block_shape: Vec<_> = array.block_shape().iter().map(u64::from).collect();
    let grid: Vec<_> = array.grid().collect();
    let block_grid: Vec<_> = array.block_grid().collect();
    let times = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<_>>();
    assert_eq!(shape, ints(&want["shape"]), "{name}");
    assert_eq!(chunk_shape, ints(&want["chunkshape"]), "{name}");
    assert_eq!(block_shape, ints(&want["blockshape"]), "{name}");
    assert_eq!(grid, ints(&want["chunks_per_dim"]), "{name}");
    assert_eq!(block_grid, ints(&want["blocks_per_chunk_dim"]), "{name}");
    assert_eq!(
        times(&grid, &chunk_shape),
        ints(&want["extshape"]),
        "{name}"
    );
    assert_eq!(
        times(&block_grid, &block_shape),
        ints(&want["extchunkshape"]),
        "{name}"
    );
    assert_eq!(array.dtype(), want["dtype"].as_str(), "{name}");
    let format = array.dtype_format().map(u64::from);
    assert_eq!(format, want["dtype_format"].as_u64(), "{name}");
}

fn array_again(array: &NdMetalayer<'_>) -> Vec<u8> {
    let mut builder = NdMetalayerBuilder::default();
    let extents = array.chunk_shape().iter().zip(array.block_shape().iter());
    for (extent, (chunk, block)) in array.shape().iter().zip(extents) {
        builder.push_axis(extent, chunk, block).unwrap();
    }
    match (array.dtype_format(), array.dtype()) {
        (Some(format), Some(dtype)) => builder.finish_b2nd(format, dtype).unwrap(),
        _ => builder.finish_caterva().unwrap(),
    }
}

fn metalayers_again(metalayers: &Metalayers<'_>) -> MetalayersBuilder {
    let mut builder = MetalayersBuilder::default();
    for metalayer in metalayers {
        builder.push(metalayer.name, metalayer.body).unwrap();
    }
    builder
}

#[test]
fn good_frames_are_read_as_expected() {
    let golden = Golden::open("b2nd");
    let expected = golden.json("expected.json");
    let (mut frames, mut bodies, mut sparse) = (0, 0, 0);
    for case in expected["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let bytes = frame_bytes(&golden, case);
        let frame = Blosc2Frame::parse(bytes).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        check_header(name, &frame, &case["frame"]);
        check_array(name, &frame, &case["nd"]);

        let metalayers = case["metalayers"].as_object().unwrap();
        assert_eq!(frame.metalayers().len(), metalayers.len(), "{name}");
        for (key, hex) in metalayers {
            let want = unhex(hex.as_str().unwrap());
            assert_eq!(frame.metalayer(key), Some(&want[..]), "{name}: {key}");
            bodies += 1;
        }
        let trailer = frame.trailer().metalayers();
        let names: Vec<_> = trailer.iter().map(|metalayer| metalayer.name).collect();
        assert_eq!(
            Value::from(names),
            case["trailer"]["vlmeta_names"],
            "{name}"
        );
        assert_eq!(int(&case["trailer"]["version"]), 1, "{name}");

        // The index chunk contains its length; it extends to the trailer.
        let at = frame.header().chunks_span().end;
        if let Some(index) = case["index_chunk"].as_object() {
            assert_eq!(int(&index["at"]), at, "{name}");
            assert_eq!(
                int(&index["cbytes"]),
                frame.index_chunk().len() as u64,
                "{name}"
            );
        } else {
            assert!(frame.index_chunk().is_empty(), "{name}");
        }
        let frame_len = usize::try_from(frame.header().frame_len()).unwrap();
        let trailer_len = int(&case["trailer"]["len"]);
        assert_eq!(
            at + frame.index_chunk().len() as u64 + trailer_len,
            frame_len as u64
        );

        // Our encoders reproduce header, array and trailer.
        let array = frame.nd().unwrap().unwrap();
        assert_eq!(
            frame.metalayer(array.form().name()),
            Some(&array_again(&array)[..])
        );
        let spec = frame.header().spec().unwrap();
        let header = metalayers_again(&frame.metalayers()).finish_header(&spec);
        assert!(bytes.starts_with(&header.unwrap()), "{name}");
        let trailer = metalayers_again(&trailer).finish_trailer();
        assert!(bytes[..frame_len].ends_with(&trailer), "{name}");

        laws::b2nd_frame(bytes);
        assert!(walk::b2nd_frame(bytes).is_some() && walk::b2nd_parts(bytes).is_some());
        sparse += usize::from(frame.header().frame_type() == FrameType::Sparse);
        frames += 1;
    }
    assert_eq!((frames, bodies, sparse), (78, 81, 3));
    report(format_args!(
        "b2nd: {frames} frames and {bodies} metalayers as recorded, header, array metalayer and \
         trailer of each re-encoded byte for byte"
    ));
}

#[test]
fn good_frames_survive_damage_to_every_byte() {
    let golden = Golden::open("b2nd");
    for path in ["m_meta_vlmeta.b2nd", "g10_empty_1d.b2nd", "k_cat_full.cat"] {
        hostile::damage(golden.file(path), laws::b2nd_frame);
    }
}

#[test]
fn bad_frames_are_refused_unless_their_fault_is_in_a_chunk() {
    let golden = Golden::open("b2nd");
    let expected = golden.json("expected.json");
    let (mut refused, mut passed) = (0, 0);
    for case in expected["malformed"].as_array().unwrap() {
        let path = case["path"].as_str().unwrap();
        let bytes = golden.file(path);
        laws::b2nd_frame(bytes);
        let nd = |frame: Blosc2Frame<'_>| frame.nd().map(drop).map_err(Fault::Array);
        let fault = Blosc2Frame::parse(bytes)
            .map_err(Fault::Frame)
            .and_then(nd)
            .err();
        if let Some(fault) = fault {
            let want = REFUSED.iter().find(|(listed, _)| *listed == path);
            assert_eq!(Some(&(path, fault)), want, "{}", case["why"]);
            refused += 1;
        } else {
            let listed = NOT_OURS.iter().any(|(listed, _)| *listed == path);
            assert!(listed, "{path} is taken: {}", case["why"]);
            passed += 1;
        }
    }
    assert_eq!((refused, passed), (REFUSED.len(), NOT_OURS.len()));
    report(format_args!(
        "b2nd: {refused} damaged files refused, {passed} with a fault in a chunk"
    ));
}
