//! Invariants of Blosc chunks for arbitrary bytes, used by the mutation test and the fuzz target
//! `dense_blosc`.

use zvf_dense::blosc::{BloscChunk, Decoder};

/// Memory limit for untrusted input.
const BUDGET: u64 = 1 << 20;
/// Maximum number of blocks of a chunk that are decoded separately.
const BLOCKS: u32 = 32;

/// Checks that separately decoded blocks equal the blocks of the whole chunk. The bytes are tried
/// as a chunk, and as a frame with chunks.
pub(crate) fn chunks(bytes: &[u8]) {
    chunk(bytes);
    if let Ok(frame) = zvf_format::b2nd::Blosc2Frame::parse(bytes) {
        chunk(frame.chunks());
        chunk(frame.index_chunk());
        for layer in frame.trailer().metalayers() {
            chunk(layer.body);
        }
    }
}

fn chunk(bytes: &[u8]) {
    let Ok(chunk) = BloscChunk::parse(bytes) else {
        return;
    };
    let header = *chunk.header();
    if u64::from(header.nbytes()) > BUDGET {
        return;
    }
    let typesize = u32::from(header.typesize());
    let mut decoder = Decoder::default();
    let mut whole = vec![0; usize::try_from(header.nbytes()).unwrap()];
    let decoded = chunk.decode(typesize, &mut decoder, &mut whole);
    let mut at = 0;
    for block in 0..header.block_count().min(BLOCKS) {
        let mut alone = vec![1; header.block_len(block)];
        let found = chunk.decode_block(block, typesize, &mut decoder, &mut alone);
        if decoded.is_ok() {
            found.unwrap();
            assert_eq!(whole.get(at..at + alone.len()), Some(&alone[..]));
        }
        at += alone.len();
    }
}
