//! Blosc2 arrays (`.b2nd`) and Caterva (`.cat`): the frame around compressed chunks, and the
//! metalayer that describes them as an array.
//!
//! A frame is a byte string that may start at any position in a file; bytes after it do not belong
//! to it. Positions in header and tables are relative to its first byte.
//!
//! | part | offset | size in bytes | content |
//! |---|---|---|---|
//! | header | 0 | H | 87 fixed bytes, then the metalayers |
//! | chunks | H | C | the stored chunks, in any order, perhaps with holes |
//! | index chunk | H + C | | one Blosc2 chunk: where each chunk starts |
//! | trailer | L − T | T | metalayers of variable length |
//!
//! A frame without chunks has no index chunk. In a sparse directory the file `chunks.b2frame` is
//! such a frame without its chunks, which are separate files; the index chunk then starts
//! at H. The index contains one little-endian i64 for each chunk: its position relative to H, or
//! the number of its file. If the top bit is set, the chunk consists of one repeated value and
//! takes no bytes.
//!
//! Header and trailer are MessagePack in a single form: every value has the widest marker of its
//! kind, at a fixed position. Any other form is rejected, even if it is valid MessagePack. All
//! numbers are big-endian. Chunks, the index and the bodies of trailing metalayers are Blosc2
//! chunks, which are little-endian and outside the scope of this module.
//!
//! # Fixed header
//!
//! | offset | marker | content |
//! |---|---|---|
//! | 0x00 | `9e` | array of 14 |
//! | 0x01 | `a8` | 8 bytes, the magic: `b2frame` and a zero |
//! | 0x0a | `d2` | i32, H, 97 or more |
//! | 0x0f | `cf` | u64, L, length of the frame: H + C + 35 or more; in a sparse directory H + 35, as C is not in it |
//! | 0x18 | `a4` | 4 bytes follow |
//! | 0x19 | | bits 0 to 3 version, 1 to 3; bits 4 and 5 width of index entries, 1 (64 bits); bit 6 chunks vary in size, only where the bytes at 0x1d are 0; bit 7 blocks vary in size, never in an array |
//! | 0x1a | | 0: one file. 1: sparse directory |
//! | 0x1b | | bits 0 to 3 codec number: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 4 zlib, 5 zstd, 6 see 0x4d; bits 4 to 7 level |
//! | 0x1c | | bits 0 and 1 split mode less 1: a wish of the writer |
//! | 0x1d | `d3` | i64, bytes of all chunks decoded |
//! | 0x26 | `d3` | i64, C, 0 where no chunk takes bytes; in a sparse directory bytes of all chunk files |
//! | 0x2f | `d2` | i32, bytes of an item, not 0 |
//! | 0x34 | `d2` | i32, bytes of a block decoded; may be 0 |
//! | 0x39 | `d2` | i32, bytes of a chunk decoded; 0 only where the bytes at 0x1d are |
//! | 0x3e | `d1` | i16, threads to compress with: advice |
//! | 0x41 | `d1` | i16, threads to decompress with: advice |
//! | 0x44 | `c2` or `c3` | whether the trailer has metalayers: advice |
//! | 0x45 | `d8` | u8, number of filter slots, at most 6 |
//! | 0x47 | | 6 filter numbers, first filter first |
//! | 0x4d | | codec number again; the plugin's when 0x1b says 6. Then its parameter |
//! | 0x4f | | 6 filter parameters |
//! | 0x55 | | bit 0: chunks have dictionaries. Then a reserved byte |
//!
//! Codec and filters are defaults: each chunk declares its own. Versions 1 to 3 have the same
//! header; version 3 only allows bits 6 and 7. Lengths are not negative. Bits without a meaning in
//! this table, and the byte 0x56, are ignored.
//!
//! A frame has ⌈bytes at 0x1d / bytes at 0x39⌉ chunks, none when the former is
//! 0. The index chunk is everything between the chunks and the trailer, 32 bytes
//! or more unless there are no chunks.
//!
//! # Metalayers
//!
//! From 0x57 to H, and in the trailer from its third byte on:
//!
//! | marker | content |
//! |---|---|
//! | `93` | array of 3 |
//! | `cd` | u16, bytes of this part up to the last offset; counted from the `93` in a header, from the byte after it in a trailer. Ignored on read |
//! | `de` | u16, number of metalayers, M; at most 16 in a header, 8192 in a trailer |
//! | `a0` + n | M times: a name of n bytes, at most 31, and |
//! | `d2` | i32, offset of the body's `c6`, from the start of header or trailer |
//! | `dc` | u16, M again |
//! | `c6` | M times: u32 length, and the body |
//!
//! Bodies follow each other without holes, in the order of the names, up to H (in a trailer up to
//! its `ce`). If a name occurs twice, the first entry counts.
//!
//! # Trailer
//!
//! | marker | content |
//! |---|---|
//! | `94` | array of 4 |
//! | `01` | version |
//! | | metalayers as above; the bodies are Blosc2 chunks |
//! | `ce` | u32, T |
//! | `d8` | u8, kind of fingerprint, 0: none, others are refused. Then 16 bytes, ignored |
//!
//! The last 23 bytes have fixed positions: read them to find T, which is at least 35.
//!
//! # Array metalayer
//!
//! One metalayer of the header makes the frame an array: `b2nd`, or `caterva`
//! in files of the older library.
//!
//! | marker | content |
//! |---|---|
//! | `97` / `95` | array of 7 (`b2nd`) or 5 (`caterva`) |
//! | `00` | version, 0 |
//! | R | number of axes, 0 to 16 (`b2nd`) or 15 (`caterva`) |
//! | `90` + R | shape: R times `d3` and an i64 |
//! | `90` + R | chunk shape: R times `d2` and an i32 |
//! | `90` + R | block shape: R times `d2` and an i32 |
//! | F | only `b2nd`: dialect of the next text, 0 to 127. 0: NumPy |
//! | `db` | only `b2nd`: u32 length, and the item type in UTF-8: NumPy's `dtype.str`, or the literal of `dtype.descr` |
//!
//! With sixteen axes the list heads are `a0`, which is not an array in MessagePack but is what
//! Blosc2 writes. `caterva` has no item type: the fixed header declares the length of items.
//!
//! # Geometry
//!
//! With ⌈0 / n⌉ = ⌈n / 0⌉ = 0, the sizes in the fixed header are
//!
//! ```text
//! block  = Π block shape · item                        bytes at 0x34
//! chunk  = Π ⌈chunk shape / block shape⌉ · block       bytes at 0x39
//! all    = Π ⌈shape / chunk shape⌉ · chunk             bytes at 0x1d
//! ```
//!
//! and an array that contradicts its header is rejected. A block extent is at most that of the
//! chunk; either may be 0 only where the shape is.
//!
//! The array is cut into a grid of ⌈shape / chunk shape⌉ chunks, each of them into a grid of ⌈chunk
//! shape / block shape⌉ blocks, all in order with the last axis fastest. Blocks are never
//! truncated: a block holds product(block shape) items and a chunk holds all its blocks, so both
//! may extend past the array. The item at index g is in chunk g / C, with r = g mod C in block r /
//! B, at r mod B in it. Items past the chunk (r ≥ C) or past the array are padding with arbitrary
//! content.
//!
//! ```
//! use zvf_format::b2nd::{NdForm, NdMetalayer};
//! # #[cfg(feature = "alloc")] {
//! use zvf_format::b2nd::{DTYPE_NUMPY, NdMetalayerBuilder};
//!
//! let mut axes = NdMetalayerBuilder::default();
//! axes.push_axis(5, 4, 2)?.push_axis(7, 5, 3)?;
//! let bytes = axes.finish_b2nd(DTYPE_NUMPY, "<i4")?;
//!
//! let array = NdMetalayer::parse(NdForm::B2nd, &bytes)?;
//! assert!(array.shape().iter().eq([5, 7]));
//! assert_eq!(array.dtype(), Some("<i4"));
//! assert!(array.grid().eq([2, 2]));
//! assert_eq!(array.chunk_len(4), Some(96), "2 by 2 blocks of 6 items");
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod frame;
mod metalayer;

pub use frame::{
    Blosc2Frame, FrameError, FrameHeader, FrameHeaderError, FrameType, HEADER_LEN, Length, MAGIC,
    Metalayer, Metalayers, MetalayersError, MetalayersIter, TRAILER_TAIL_LEN, Trailer,
    TrailerError, TrailerTail,
};
#[cfg(feature = "alloc")]
pub use frame::{FrameLimit, FrameSpec, MetalayerLimit, MetalayersBuilder};
pub use metalayer::{
    DTYPE_NUMPY, NdError, NdExtents, NdForm, NdGeometryError, NdMetalayer, NdMetalayerError,
    NdPart, NdShape,
};
#[cfg(feature = "alloc")]
pub use metalayer::{NdLimit, NdMetalayerBuilder};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The MessagePack markers in use.
mod marker {
    pub(super) const FIXARRAY: u8 = 0x90;
    pub(super) const FIXSTR: u8 = 0xa0;
    pub(super) const FALSE: u8 = 0xc2;
    pub(super) const TRUE: u8 = 0xc3;
    pub(super) const BIN32: u8 = 0xc6;
    pub(super) const U16: u8 = 0xcd;
    pub(super) const U32: u8 = 0xce;
    pub(super) const U64: u8 = 0xcf;
    pub(super) const I16: u8 = 0xd1;
    pub(super) const I32: u8 = 0xd2;
    pub(super) const I64: u8 = 0xd3;
    pub(super) const FIXEXT16: u8 = 0xd8;
    pub(super) const STR32: u8 = 0xdb;
    pub(super) const ARRAY16: u8 = 0xdc;
    pub(super) const MAP16: u8 = 0xde;
}

/// A value after its MessagePack marker.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Marked<T> {
    marker: u8,
    value: T,
}
