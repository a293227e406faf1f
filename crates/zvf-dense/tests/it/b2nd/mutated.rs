//! Mutated frames are rejected or read, in bounded memory.

use zvf_testkit::{golden::Golden, stores::Random};

use super::recorded;
use crate::peak;

#[path = "../../laws/b2nd.rs"]
mod array_law;
#[path = "../../laws/blosc.rs"]
mod chunk_law;

/// Approximate number of mutants over all frames.
const MUTANTS: usize = 30_000;
/// Maximum length of a mutated frame; longer ones take too much time.
const LONGEST: usize = 6000;

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(2) {
        // Half of the mutations hit the headers at both ends.
        let at = match random.below(4) {
            0 => random.below(bytes.len().min(200)),
            1 => bytes.len() - 1 - random.below(bytes.len().min(150)),
            _ => random.below(bytes.len()),
        };
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes[at] = random.below(256).to_le_bytes()[0],
            3 => {
                let number = [0, 1, -1, i32::MAX, i32::MIN, 0x1000_0000][random.below(6)];
                let number = if random.below(2) == 0 {
                    number.to_le_bytes()
                } else {
                    number.to_be_bytes()
                };
                for (byte, value) in bytes[at..].iter_mut().zip(number) {
                    *byte = value;
                }
            }
            4 => {
                let from = random.below(bytes.len());
                let len = random.below(16).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + len, at);
            }
            _ if random.below(20) == 0 => bytes.truncate(at.max(1)),
            _ => bytes[at] = bytes[at].wrapping_add(1),
        }
    }
}

#[test]
fn mutated_frames_are_rejected_or_read() {
    let golden = Golden::open("b2nd");
    let files = recorded(&golden).filter(|(_, bytes)| bytes.len() <= LONGEST);
    let frames: Vec<&[u8]> = files.map(|(_, bytes)| bytes).collect();
    let mut random = Random::new(1);
    let (mut opened, mut read) = (0, 0);
    let before = peak();
    for number in 0..MUTANTS {
        let mut bytes = frames[number % frames.len()].to_vec();
        mutate(&mut random, &mut bytes);
        let (is_array, is_whole) = array_law::array(&bytes);
        opened += usize::from(is_array);
        read += usize::from(is_whole);
        chunk_law::chunks(&bytes);
    }
    // Most of a frame is data, where any byte is valid.
    assert!(
        opened > MUTANTS / 4 && read > MUTANTS / 20,
        "{opened} {read}"
    );
    assert!(read < opened, "damage was seen");
    // Other tests run concurrently in this process.
    let grown = peak() - before;
    assert!(grown < 256 << 20, "{grown} bytes more");
}
